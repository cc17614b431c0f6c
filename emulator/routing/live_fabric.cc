#include "emulator/routing/live_fabric.h"

#include <algorithm>
#include <bit>

namespace percs {

std::vector<PortMask> LivePorts(const Topology& topology, const Failures& failures) {
  std::vector<PortMask> ports(topology.hubs());
  for (NodeId node = 0; node < topology.hubs(); ++node) {
    if (failures.hubs.count(node)) continue;
    for (int p = 0; p < kLinkPorts; ++p) {
      const LinkEnd peer = topology.Peer(node, static_cast<PortId>(p));
      if (peer.node >= topology.hubs()) continue;
      if (failures.hubs.count(peer.node)) continue;
      ports[node] |= PortBit(static_cast<PortId>(p));
    }
  }
  for (const auto& [node, port] : failures.links) {
    if (node >= topology.hubs() || port >= kLinkPorts) continue;
    const LinkEnd peer = topology.Peer(node, port);
    if (peer.node >= topology.hubs()) continue;
    ports[node] &= ~PortBit(port);
    ports[peer.node] &= ~PortBit(peer.port);
  }
  return ports;
}

LiveFabric::LiveFabric(const Topology& topology, const Failures& failures)
    : topology_(topology),
      intact_(failures.empty()),
      ports_(LivePorts(topology, failures)),
      neighbors_(topology.hubs()),
      alive_hubs_(static_cast<std::size_t>(topology.supernodes())),
      two_hops_(topology.hubs()),
      landing_max_(static_cast<std::size_t>(topology.supernodes())) {
  const int hubs = topology.hubs_per_supernode();
  l_port_.resize(static_cast<std::size_t>(hubs * hubs), kNoPort);
  for (int a = 0; a < hubs; ++a) {
    for (int b = 0; b < hubs; ++b) {
      if (a != b)
        l_port_[static_cast<std::size_t>(a * hubs + b)] =
            topology.LPort(topology.node(0, a), topology.node(0, b));
    }
  }
  for (NodeId node = 0; node < topology.hubs(); ++node) {
    if (!failures.hubs.count(node)) alive_hubs_[Supernode(node)] |= Bit(node);
  }
  for (NodeId node = 0; node < topology.hubs(); ++node) {
    const int own = topology.hub_in_supernode(node);
    for (int other = 0; other < hubs; ++other) {
      if (other == own) continue;
      if (port(node, l_port_[static_cast<std::size_t>(own * hubs + other)]))
        neighbors_[node] |= HubBit(other);
    }
  }
  for (NodeId node = 0; node < topology.hubs(); ++node) {
    two_hops_[node] = Within(node, 2);
    int& most = landing_max_[Supernode(node)];
    most = std::max(most, std::popcount(two_hops_[node]));
  }
}

HubMask LiveFabric::Within(NodeId node, int hops) const {
  if (!hub(node)) return 0;
  const int supernode = topology_.supernode_of(node);
  HubMask reached = Bit(node), edge = reached;
  for (int i = 0; i < hops && edge; ++i) {
    HubMask next = 0;
    for (HubMask rest = edge; rest; rest &= rest - 1) {
      next |= neighbors_[topology_.node(supernode, std::countr_zero(rest))];
      if ((reached | next) == hubs(supernode)) break;
    }
    edge = next & ~reached;
    reached |= next;
  }
  return reached;
}

PortMask LiveFabric::LPorts(int hub, HubMask hubs) const {
  const PortId* row =
      l_port_.data() + static_cast<std::ptrdiff_t>(hub) * topology_.hubs_per_supernode();
  PortMask ports = 0;
  for (; hubs; hubs &= hubs - 1) {
    const int other = std::countr_zero(hubs);
    if (other != hub) ports |= PortBit(row[other]);
  }
  return ports;
}

void LiveFabric::DLinks(int from, int to, std::vector<DLink>* links) const {
  links->clear();
  const int others = topology_.supernodes() - 1, hubs = topology_.hubs_per_supernode();
  const int distance = (to - from + topology_.supernodes()) % topology_.supernodes();
  for (int copy = 0; copy < topology_.spec().d_links_per_pair; ++copy) {
    const int slot = copy * others + distance - 1;
    const int peer_slot = copy * others + topology_.supernodes() - distance - 1;
    const DLink link{slot % hubs, static_cast<PortId>(kDFirst + slot / hubs), peer_slot % hubs};
    if (intact_ || port(topology_.node(from, link.exit), link.port)) links->push_back(link);
  }
}

}  // namespace percs
