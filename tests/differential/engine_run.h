// Runs the engine on a scenario and gathers what the reference router can be compared with.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "emulator/sim/run.h"
#include "tests/differential/compare.h"

namespace percs::reference {

struct EngineRun {
  Observed observed;
  std::vector<TableSwitch> tables;      // all that were in force, epoch 1 first
  std::vector<std::string> violations;  // of the run's own checkers
  Digest digest;
};

// The whole run as a user gets it; tables come from the planner, and from network management when
// the scenario reroutes.
absl::StatusOr<EngineRun> RunEngine(const Scenario& scenario);
// The same fabric with these tables instead of the planner's, driven window by window with windows
// of random lengths. REQUIRES: !scenario.reroute.
absl::StatusOr<EngineRun> RunEngineWithTables(const Scenario& scenario, const TableSet& tables);

}  // namespace percs::reference
