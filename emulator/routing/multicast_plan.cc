#include "emulator/routing/multicast_plan.h"

#include <array>
#include <bit>

namespace percs {

std::vector<TreeHop> LowestPositions(const Topology& topology, const LiveFabric& live,
                                     NodeId source) {
  std::vector<TreeHop> hops(topology.hubs());
  std::array<std::vector<NodeId>, kL2 + 2> at;  // hubs by position + 1
  if (!live.hub(source)) return hops;
  hops[source].position = kInjected;
  at[0].push_back(source);
  for (Position position = kInjected; position <= kL2; ++position) {
    // By index: nothing is added to this position any more, every hop rises.
    for (const NodeId node : at[static_cast<std::size_t>(position + 1)]) {
      if (hops[node].position != position) continue;  // reached lower since
      for (PortMask ports = live.ports(node); ports; ports &= ports - 1) {
        const PortId port = static_cast<PortId>(std::countr_zero(ports));
        const Position next = NextPosition(position, port);
        TreeHop& hop = hops[topology.Peer(node, port).node];
        if (next >= hop.position) continue;
        hop = {next, node, port};
        at[static_cast<std::size_t>(next + 1)].push_back(topology.Peer(node, port).node);
      }
    }
  }
  return hops;
}

namespace {

void PlanGroup(const Topology& topology, const LiveFabric& live, std::size_t index,
               MulticastEntries* entries) {
  const MulticastGroup& group = topology.groups()[index];
  const std::vector<TreeHop> hops = LowestPositions(topology, live, group.source);
  const auto entry = [&](NodeId node) -> PortMask& {
    std::vector<PortMask>& masks = (*entries)[node];
    masks.resize(topology.groups().size());
    return masks[index];
  };
  for (const NodeId member : group.members) {
    if (hops[member].position == kNoPosition) continue;
    entry(member) |= HubTables::kDeliverHere;
    for (NodeId node = member; node != group.source; node = hops[node].from) {
      PortMask& mask = entry(hops[node].from);
      if (mask & PortBit(hops[node].port)) break;  // the tree reaches as far as here already
      mask |= PortBit(hops[node].port);
    }
  }
}

}  // namespace

MulticastPlan PlanMulticast(const Topology& topology, const LiveFabric& live) {
  MulticastPlan plan;
  for (std::size_t group = 0; group < topology.groups().size(); ++group) {
    PlanGroup(topology, live, group, &plan.entries);
  }
  return plan;
}

}  // namespace percs
