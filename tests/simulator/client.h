// What a person does at a fabric: applies a scenario, breaks links, pauses, looks, and sees that
// what was acknowledged is there.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/simulator/fabric.h"

namespace percs::sim {

class Client {
 public:
  // `commands`: how many faults it creates or deletes. `all`: of all kinds of commands.
  // `after`: number of the run before, 0 for none.
  Client(SimulatedFabric* fabric, v1::ApplyRequest request, std::uint32_t commands, bool all,
         std::uint64_t after);

  // Acts now and then, until the run is over.
  void Start();
  // From now on it only sees to it that the run goes on.
  void Finish() { commands_ = 0; }
  bool done() const { return done_; }
  const std::string& failure() const { return failure_; }

  std::uint64_t run() const { return run_; }
  // The result, or why the run failed. REQUIRES: done().
  const absl::StatusOr<v1::GetResultReply>& result() const { return *result_; }
  std::uint64_t acknowledged() const;
  // The journal has what was acknowledged, and each once.
  std::string CheckJournal(const std::vector<v1::JournalRecord>& records) const;

 private:
  void Act(Controller& controller);
  void Apply(Controller& controller);
  void Look(Controller& controller);
  void Command(FabricRun& run);
  // The faults whose creation was acknowledged are there, whatever happened since.
  void LookAtFaults(FabricRun& run);
  void AnyCommand(Controller& controller, FabricRun& run);
  void CreateFault(FabricRun& run);
  v1::Fault DrawFault(const FabricRun& run, const std::string& id);
  void LoadRoutes(Controller& controller, FabricRun& run);
  std::uint32_t AnyDaemon() { return random_.Below(fabric_->settings().daemons); }
  // Of something that it has asked for. REQUIRES: there is something.
  std::string AnyName();
  // Notes that it asks for what has this mark. False: it has done so before.
  bool Ask(const std::string& mark);
  // Once of each kind and name.
  void Manage(FabricRun& run, v1::JournalRecord record);
  // Takes the answer to what has this mark.
  std::function<void(const absl::StatusOr<Time>& at)> Told(const std::string& mark);
  void Fail(const std::string& why);

  SimulatedFabric* const fabric_;
  const v1::ApplyRequest request_;
  const bool all_;
  const std::uint64_t after_;
  std::uint32_t commands_;
  RandomStream random_;
  std::map<std::string, bool> asked_;  // what it asked for, and whether that was acknowledged
  std::uint64_t run_ = 0;
  bool acknowledged_run_ = false, applying_ = false, done_ = false;
  std::optional<absl::StatusOr<v1::GetResultReply>> result_;
  std::string failure_;
};

}  // namespace percs::sim
