// The fabric minus what is believed broken: which hubs and links a plan may use.
#pragma once

#include <cstdint>
#include <vector>

#include "emulator/routing/planner.h"
#include "emulator/topology/topology.h"

namespace percs {

using HubMask = std::uint32_t;  // bit h = hub h of a supernode
constexpr HubMask HubBit(int hub) { return HubMask{1} << hub; }

// A live D link seen from the supernode it leaves.
struct DLink {
  int exit = 0;     // hub of the supernode it leaves
  PortId port = 0;  // of that hub
  int landing = 0;  // hub of the supernode it leads to
};

// Live link ports by hub: both ends and the link are up. Blades are no part of it.
std::vector<PortMask> LivePorts(const Topology& topology, const Failures& failures);

class LiveFabric {
 public:
  LiveFabric(const Topology& topology, const Failures& failures);

  bool hub(NodeId node) const {
    return ports_[node] != 0 || alive_hubs_[Supernode(node)] & Bit(node);
  }
  // Live link ports of a hub; both ends and the link are up. Blades are no part of it.
  PortMask ports(NodeId node) const { return ports_[node]; }
  bool port(NodeId node, PortId port) const { return (ports_[node] & PortBit(port)) != 0; }
  // Live hubs of a supernode.
  HubMask hubs(int supernode) const { return alive_hubs_[static_cast<std::size_t>(supernode)]; }
  // Hubs of its supernode one live L link away from a hub.
  HubMask neighbors(NodeId node) const { return neighbors_[node]; }
  // Hubs of its supernode at most `hops` live L links away, itself included; none for a dead hub.
  HubMask Within(NodeId node, int hops) const;
  // What a packet that lands on `node` over a D link at that position can still reach in the
  // supernode: two L hops are left after D0, one after D1.
  HubMask Landing(NodeId node, Position position) const {
    return position == kD0 ? two_hops_[node] : Within(node, 1);
  }
  // Most hubs that a landing anywhere in the supernode can reach.
  int landing_max(int supernode) const { return landing_max_[static_cast<std::size_t>(supernode)]; }
  // L ports of hub `hub` to each of `hubs`. The same in every supernode.
  PortMask LPorts(int hub, HubMask hubs) const;
  // Live D links from one supernode to another, by copy number.
  void DLinks(int from, int to, std::vector<DLink>* links) const;

 private:
  std::size_t Supernode(NodeId node) const {
    return static_cast<std::size_t>(topology_.supernode_of(node));
  }
  HubMask Bit(NodeId node) const { return HubBit(topology_.hub_in_supernode(node)); }

  const Topology& topology_;
  bool intact_;  // nothing is broken, so every link exists
  std::vector<PortMask> ports_;
  std::vector<HubMask> neighbors_;
  std::vector<HubMask> alive_hubs_;
  std::vector<HubMask> two_hops_;
  std::vector<int> landing_max_;  // by supernode
  std::vector<PortId> l_port_;    // hub x hub
};

}  // namespace percs
