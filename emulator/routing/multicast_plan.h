// Plans the multicast tables: for every group one tree over live links, from its source to its
// members.
#pragma once

#include <map>
#include <vector>

#include "emulator/routing/live_fabric.h"
#include "emulator/topology/topology.h"

namespace percs {

// How packets of `source` get to a hub at the lowest position; the farther hubs of a path are never
// at a lower one, so these paths are legal and together a tree. position == kNoPosition: not at
// all.
struct TreeHop {
  Position position = kNoPosition;
  NodeId from = kNoNode;  // the hub before
  PortId port = kNoPort;  // ... and the port it leaves that by
};
std::vector<TreeHop> LowestPositions(const Topology& topology, const LiveFabric& live,
                                     NodeId source);

// Entries of all groups, for the hubs that have any.
using MulticastEntries = std::map<NodeId, std::vector<PortMask>>;
struct MulticastPlan {
  MulticastEntries entries;
  // Of a network of switches: groups, as destinations, whose packets take detours; ascending.
  std::vector<NodeId> detours;
};
// REQUIRES: no graph.
MulticastPlan PlanMulticast(const Topology& topology, const LiveFabric& live);

}  // namespace percs
