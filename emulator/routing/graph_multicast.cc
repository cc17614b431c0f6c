#include "emulator/routing/graph_multicast.h"

#include <bit>
#include <optional>

namespace percs {
namespace {

// Adds what `reached` has not, over links up or down from `order`, breadth first. Returns `order`
// with what was added.
std::vector<NodeId> Spread(const SwitchGraph& graph, const std::vector<PortMask>& live, bool up,
                           std::vector<NodeId> order, std::vector<LinkEnd>* reached) {
  for (std::size_t i = 0; i < order.size(); ++i) {
    for (PortMask ports = live[order[i]]; ports; ports &= ports - 1) {
      const auto port = static_cast<PortId>(std::countr_zero(ports));
      const NodeId next = graph.Peer(order[i], port).node;
      if ((*reached)[next].node != kNoNode || graph.Up(order[i], next) != up) continue;
      (*reached)[next] = {order[i], port};
      order.push_back(next);
    }
  }
  return order;
}

// Of one group: by switch, where it has any.
using Entries = std::map<NodeId, PortMask>;

// Nothing: a member has no planned route. From every switch packets to all members that lie the
// same way take the same port, the lowest, so that the routes are a tree.
std::optional<Entries> PlannedTree(const SwitchGraph& graph, const MulticastGroup& group,
                                   const std::vector<PortMask>& live) {
  Entries entries;
  for (const NodeId member : group.members) {
    if (member != group.source && live[member] == 0) continue;  // it is cut off
    entries[member] |= HubTables::kDeliverHere;
    for (NodeId node = group.source; node != member;) {
      const PortMask ports = graph.Planned(node, member) & live[node];
      if (ports == 0) return std::nullopt;
      const auto port = static_cast<PortId>(std::countr_zero(ports));
      entries[node] |= PortBit(port);
      node = graph.Peer(node, port).node;
    }
  }
  return entries;
}

Entries TreeOfDetours(const MulticastGroup& group, const std::vector<LinkEnd>& tree) {
  Entries entries;
  for (const NodeId member : group.members) {
    if (tree[member].node == kNoNode) continue;
    entries[member] |= HubTables::kDeliverHere;
    for (NodeId node = member; node != group.source; node = tree[node].node) {
      entries[tree[node].node] |= PortBit(tree[node].port);
    }
  }
  return entries;
}

}  // namespace

std::vector<LinkEnd> DetourTree(const Topology& topology, const std::vector<PortMask>& live,
                                NodeId source) {
  std::vector<LinkEnd> reached(topology.hubs());
  reached[source] = {source, kNoPort};
  std::vector<NodeId> above = Spread(*topology.graph(), live, /*up=*/true, {source}, &reached);
  Spread(*topology.graph(), live, /*up=*/false, std::move(above), &reached);
  return reached;
}

MulticastPlan PlanGraphMulticast(const Topology& topology, const std::vector<PortMask>& live) {
  MulticastPlan plan;
  const std::size_t groups = topology.groups().size();
  for (std::size_t index = 0; index < groups; ++index) {
    const MulticastGroup& group = topology.groups()[index];
    std::optional<Entries> tree = PlannedTree(*topology.graph(), group, live);
    if (!tree) {
      tree = TreeOfDetours(group, DetourTree(topology, live, group.source));
      plan.detours.push_back(topology.nodes() + static_cast<NodeId>(index));
    }
    for (const auto& [node, mask] : *tree) {
      std::vector<PortMask>& masks = plan.entries[node];
      masks.resize(groups);
      masks[index] = mask;
    }
  }
  return plan;
}

}  // namespace percs
