// Multicast trees of a network of switches (emulator/topology/switch_graph.h).
#pragma once

#include <vector>

#include "emulator/routing/multicast_plan.h"
#include "emulator/topology/topology.h"

namespace percs {

// `live`: link ports of every switch that are up (LivePorts).

// A tree of detours from `source`, up and then down, to all that any reaches: by switch the end of
// the link that it is reached by, {source, kNoPort} for the source, and {} for what none reaches.
std::vector<LinkEnd> DetourTree(const Topology& topology, const std::vector<PortMask>& live,
                                NodeId source);

// The planned routes from a group's source to its members, if all that are not cut off have one
// over live links; else detours. REQUIRES: a graph.
MulticastPlan PlanGraphMulticast(const Topology& topology, const std::vector<PortMask>& live);

}  // namespace percs
