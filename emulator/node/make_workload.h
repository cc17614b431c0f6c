// From a scenario to the part of its workload that runs on one hub.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "emulator/workload/hub_workload.h"

namespace percs {

// INVALID_ARGUMENT for a workload that the machine cannot have, whichever hub makes its part.
absl::Status CheckWorkload(const Scenario& scenario, const Topology& topology);

// The workload's part for the services' hub; null if the scenario has none. INVALID_ARGUMENT if the
// pattern does not fit the topology. REQUIRES: CheckWorkload.
absl::StatusOr<std::unique_ptr<HubWorkload>> MakeHubWorkload(const Scenario& scenario,
                                                             const Topology& topology,
                                                             HubServices& hub);

}  // namespace percs
