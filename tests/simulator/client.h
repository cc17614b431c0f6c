// What a person does at a fabric: applies a scenario, breaks links, pauses, looks, and sees that
// what was acknowledged is there.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/simulator/fabric.h"

namespace percs::sim {

class Client {
 public:
  // `commands`: how many faults it creates or deletes.
  Client(SimulatedFabric* fabric, v1::ApplyRequest request, std::uint32_t commands);

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
  void CreateFault(FabricRun& run);
  void Manage(FabricRun& run, const std::string& id, v1::JournalRecord record);
  void Fail(const std::string& why);

  SimulatedFabric* const fabric_;
  const v1::ApplyRequest request_;
  std::uint32_t commands_;
  RandomStream random_;
  std::map<std::string, bool> asked_;  // what it asked for, and whether that was acknowledged
  std::uint64_t run_ = 0;
  bool acknowledged_run_ = false, applying_ = false, done_ = false;
  std::optional<absl::StatusOr<v1::GetResultReply>> result_;
  std::string failure_;
};

}  // namespace percs::sim
