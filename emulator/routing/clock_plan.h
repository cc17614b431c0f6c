// Plans the tree by which the global clock is distributed, and proves one. `live` are the link
// ports of every hub that are up (LivePorts).
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "emulator/routing/planner.h"
#include "emulator/topology/topology.h"

namespace percs {

// The hub that all others set their clocks by: the lowest live one with a live link; kNoNode if
// there is none.
NodeId ClockSource(const std::vector<PortMask>& live);
// HubTables::clock of every hub: a tree of fewest links from the source to every hub that it
// reaches.
std::vector<PortMask> PlanClock(const Topology& topology, const std::vector<PortMask>& live);

// FAILED_PRECONDITION with the witness unless the tables have one source, the right one, and
// symbols get from it to every hub that any path reaches, once and over live links.
absl::Status CheckClock(const Topology& topology, const std::vector<PortMask>& live,
                        const TableSet& tables);

}  // namespace percs
