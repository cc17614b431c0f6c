// Cell blades of a scenario: their places in the topology, their programs and their faults.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "emulator/metrics/node_stats.h"
#include "emulator/scenario/scenario.h"
#include "percs/v1/common.pb.h"
#include "percs/v1/scenario.pb.h"
#include "proto/scenario/errors.h"

namespace percs {

// The machine with its blades; nullopt after an error.
std::optional<Topology> BuildMachine(const v1::Scenario& message, TopologySpec spec,
                                     ErrorList* errors);
// One per blade of the topology.
std::vector<BladeConfig> BuildBlades(const v1::Scenario& message, const Topology& topology,
                                     ErrorList* errors);

// A fault of part of a blade. NOT_FOUND or INVALID_ARGUMENT says which part there is.
bool IsBladeFault(const v1::Fault& fault);
// A triblade has the parts of two blades. Without `blades`, one per blade, any may be a triblade:
// then a blade says itself what it does not have.
absl::StatusOr<BladeFault> BuildBladeFault(const v1::Fault& fault, const Topology& topology,
                                           const std::vector<BladeConfig>* blades = nullptr);
// "blade0:SPE3 down".
std::string DescribeBladeFault(const BladeFault& fault, const Topology& topology);
// Whether the last of `faults` is possible after the others: no part fails twice, and every bus
// keeps a ring in each direction. INVALID_ARGUMENT if not.
absl::Status CheckLastBladeFault(const std::vector<BladeFault>& faults, const Topology& topology);

}  // namespace percs
