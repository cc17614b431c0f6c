// The part of the table check that is about Cell blades, which switch nothing: walks to and from
// one are those of the hub it is plugged into, if the tables on both sides of its link say so. A
// blade's link is on no other route, so it closes no cycle of channels.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "emulator/routing/live_fabric.h"
#include "emulator/routing/planner.h"

namespace percs {

// FAILED_PRECONDITION names the blade whose tables are wrong. Adds the pairs that a dead link of a
// blade cuts off to `report`.
absl::Status CheckBlades(const Topology& topology, const LiveFabric& live, const Failures& failures,
                         const std::vector<std::shared_ptr<const HubTables>>& tables,
                         CheckReport* report);

}  // namespace percs
