#include "emulator/routing/clock_plan.h"

#include <bit>

#include "fmt/format.h"

namespace percs {

NodeId ClockSource(const std::vector<PortMask>& live) {
  for (NodeId node = 0; node < live.size(); ++node) {
    if (live[node] != 0) return node;
  }
  return kNoNode;
}

std::vector<PortMask> PlanClock(const Topology& topology, const std::vector<PortMask>& live) {
  std::vector<PortMask> masks(topology.hubs());
  const NodeId source = ClockSource(live);
  if (source == kNoNode) return masks;
  std::vector<bool> reached(topology.hubs());
  std::vector<NodeId> order = {source};
  reached[source] = true;
  masks[source] = HubTables::kDeliverHere;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const NodeId node = order[i];
    for (PortMask ports = live[node]; ports; ports &= ports - 1) {
      const PortId port = static_cast<PortId>(std::countr_zero(ports));
      const NodeId peer = topology.Peer(node, port).node;
      if (reached[peer]) continue;
      reached[peer] = true;
      masks[node] |= PortBit(port);
      order.push_back(peer);
    }
  }
  return masks;
}

absl::Status CheckClock(const Topology& topology, const std::vector<PortMask>& live,
                        const TableSet& tables) {
  const auto wrong = [](const std::string& what) {
    return absl::FailedPreconditionError("route tables: the clock's tree " + what);
  };
  const NodeId source = ClockSource(live);
  if (source == kNoNode) return absl::OkStatus();
  for (NodeId node = 0; node < topology.hubs(); ++node) {
    if (((tables[node]->clock & HubTables::kDeliverHere) != 0) == (node == source)) continue;
    return wrong(node == source ? "does not start at " + topology.NodeName(source)
                                : fmt::format("starts at {}, not only at {}",
                                              topology.NodeName(node), topology.NodeName(source)));
  }
  std::vector<bool> reached(topology.hubs());
  std::vector<NodeId> order = {source};
  reached[source] = true;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const NodeId node = order[i];
    for (PortMask ports = tables[node]->clock & ~HubTables::kDeliverHere; ports;
         ports &= ports - 1) {
      const PortId port = static_cast<PortId>(std::countr_zero(ports));
      if (!(live[node] & PortBit(port))) {
        return wrong(
            fmt::format("takes {}, which is not a live link", topology.LinkName({node, port})));
      }
      const NodeId peer = topology.Peer(node, port).node;
      if (reached[peer]) {
        return wrong(fmt::format("reaches {} twice, the second time from {}",
                                 topology.NodeName(peer), topology.NodeName(node)));
      }
      reached[peer] = true;
      order.push_back(peer);
    }
  }
  for (const NodeId node : order) {
    for (PortMask ports = live[node]; ports; ports &= ports - 1) {
      const NodeId peer = topology.Peer(node, static_cast<PortId>(std::countr_zero(ports))).node;
      if (!reached[peer]) return wrong("does not reach " + topology.NodeName(peer));
    }
  }
  return absl::OkStatus();
}

}  // namespace percs
