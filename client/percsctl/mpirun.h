// percsctl mpirun: what its ways to run have in common. The machine is in this process
// (mpirun.cc), or in daemons (mpirun_daemons.cc).
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/mpi/job.h"
#include "client/mpi/job_journal.h"
#include "client/mpi/launch.h"
#include "client/percsctl/fabric_options.h"
#include "client/percsctl/fault.h"
#include "client/percsctl/outcome.h"
#include "percs/v1/scenario.pb.h"

namespace percs {

struct MpirunArguments {
  std::uint32_t ranks = 1;
  std::string scenario, map_by, compute = "zero", collectives = "p2p", report, control, journal;
  std::vector<std::string> program, settings, open_mpi;
  bool dry_run = false;
  int daemons = 0;       // 0: none are started
  FabricOptions fabric;  // without a name: none
  std::uint32_t job = 1;
  int first_window = 0;

  bool on_daemons() const {
    return daemons > 0 || !fabric.name.empty() || !fabric.controller.empty();
  }
};

// The scenario's machine and the program, both from what stands on the command line.
struct MpirunPlan {
  v1::Scenario message;
  Scenario machine;
  std::vector<std::string> program;
  std::vector<mpi::RankPlace> places;
  double compute_scale = 0;
  std::uint64_t collective_bytes = 0;
};

// How it ended.
struct MpirunEnd {
  mpi::JobResult result;
  FaultList faults;     // with what they cost
  int status = 0;       // of the program
  bool has_run = true;  // `result.run` is there: the machine's run has ended, too
  double wall_seconds = 0;
};

// What is looked at while the program runs.
struct MpirunSight {
  std::function<bool()> failed;           // it cannot go on; Open MPI is to end it
  std::function<std::string()> progress;  // for people
};

// Starts Open MPI's mpirun, passes signals on to it, and waits for its end: its exit status, 128 +
// n after signal n. INTERNAL if it cannot be started.
absl::StatusOr<int> RunOpenMpi(const mpi::LaunchOptions& launch, const MpirunSight& sight);

// On the daemons of a fabric, which is started for it, or runs. Errors: the fabric's, and
// ALREADY_EXISTS for a job or windows that another program has. `journal` may be null.
absl::StatusOr<MpirunEnd> RunOnDaemons(const MpirunArguments& a, const MpirunPlan& plan,
                                       const Topology& topology, mpi::LaunchOptions launch,
                                       mpi::JobJournal* journal);

mpi::TrafficCounts SumTraffic(const mpi::JobResult& result);
// To standard error, so that the program's output can be piped.
void PrintJob(const MpirunEnd& end, const MpirunPlan& plan, const Topology& topology);
// As JSON.
absl::Status WriteJob(const std::string& file, const MpirunEnd& end, const MpirunPlan& plan,
                      const Topology& topology);

}  // namespace percs
