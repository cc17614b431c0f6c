// Debian's Open MPI, started so that its ranks use a fabric: the command, what is wrong with a
// program before it is started, and where ranks go.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/mpi/transport.h"
#include "emulator/topology/topology.h"

namespace percs::mpi {

struct LaunchOptions {
  std::uint32_t ranks = 0;
  std::vector<std::string> program;    // and its arguments
  std::string socket;                  // of the fabric, or a folder that has one for each rank
  std::string libraries;               // folder of libpercs-fi.so and libpercs-clock.so
  bool collectives = false;            // on CAUs: Open MPI loads the component
  std::vector<std::string> arguments;  // more, for Open MPI's mpirun
};

// NOT_FOUND if it is not installed.
absl::Status CheckOpenMpi();

// Its mpirun with all options, as an argument list that begins with `env`.
std::vector<std::string> OpenMpiCommand(const LaunchOptions& options);

// The folder of the libraries that ranks load: lib/percs beside this program's folder. NOT_FOUND if
// one is missing; that of collectives on CAUs only if they are wanted.
absl::StatusOr<std::string> FindRankLibraries(bool collectives);

// A program that cannot run this way: NOT_FOUND if there is none, FAILED_PRECONDITION if it is
// linked statically or with another MPI. Scripts and what loads MPI later pass.
absl::Status CheckProgram(const std::string& program);

// `hub`: rank r on hub r modulo the number of hubs; `node:K`: K ranks in turn on each hub; else a
// file with the name of a hub per line, for each rank. Windows of a hub are taken from number
// `first_window` on, which are alternately of its HFIs. INVALID_ARGUMENT, NOT_FOUND.
absl::StatusOr<std::vector<RankPlace>> PlaceRanks(const std::string& map_by, std::uint32_t ranks,
                                                  const Topology& topology, int windows_per_hfi,
                                                  int first_window = 0);

}  // namespace percs::mpi
