// The faults of a scenario, with what only the whole scenario can refuse.
#pragma once

#include "emulator/scenario/scenario.h"
#include "emulator/topology/topology.h"
#include "percs/v1/scenario.pb.h"
#include "proto/scenario/errors.h"

namespace percs {

// Adds `faults` of the message to the scenario, whose parameters, seed, blades and stop_at are
// there; every problem goes to `errors`.
void BuildFaults(const v1::Scenario& message, const Topology& topology, Scenario* scenario,
                 ErrorList* errors);

}  // namespace percs
