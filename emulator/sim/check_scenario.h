// Whether a scenario can be run, without building its machine. What checks a file, what runs it in
// one process and what runs it over daemons ask here, so that none refuses what another passed.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "emulator/management/fault_service.h"
#include "emulator/routing/tree_plan.h"
#include "emulator/scenario/scenario.h"
#include "emulator/topology/topology.h"

namespace percs {

enum class RunsOn {
  kProcess,  // one, from start to end: the run has to end by itself
  kDaemons,  // until it is stopped, if need be; the lookahead has to be long enough
};

// INVALID_ARGUMENT says what is wrong, with the arithmetic; also what Topology::Create says.
absl::Status CheckScenario(const Scenario& scenario, RunsOn where);

// A workload without a number of messages, an interval or a time to stop at.
bool RunsUntilStopped(const Scenario& scenario);

// INVALID_ARGUMENT for a workload, cables, multicast groups, table sizes, management traffic or
// route settings that the machine of `scenario.topology` cannot have.
absl::Status CheckMachine(const Scenario& scenario, const Topology& topology);
// Trees of the scenario, which are there before it starts; every process plans them alike.
absl::StatusOr<std::vector<std::shared_ptr<const TreePlan>>> PlanTrees(const Scenario& scenario,
                                                                       const Topology& topology);
// `window`: the lookahead; `log` may be null.
std::unique_ptr<FaultService> MakeFaultService(const Scenario& scenario, const Topology& topology,
                                               Time window, EventLog* log);
// The faults that the scenario has as resources; and whether its stall limit leaves them time.
absl::Status CreateFaults(const Scenario& scenario, FaultService& faults);

}  // namespace percs
