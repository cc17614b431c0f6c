// A slow packet's-eye view of route tables, sharing nothing with the checker: follows masks one by
// one, and finds what is reachable at all by visiting every (hub, position).
#pragma once

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "emulator/routing/planner.h"

namespace percs::test {

using TableSet = std::vector<std::shared_ptr<const HubTables>>;

class TableWalker {
 public:
  TableWalker(const Topology& topology, const Failures& failures)
      : topology_(topology), failures_(failures) {}

  bool Alive(NodeId node) const { return !failures_.hubs.contains(node); }
  bool Alive(NodeId node, PortId port) const {
    const LinkEnd peer = topology_.Peer(node, port);
    return peer.node != kNoNode && Alive(node) && Alive(peer.node) &&
           !failures_.links.contains({node, port}) &&
           !failures_.links.contains({peer.node, peer.port});
  }
  // Hops of the longest walk over every choice, or -1 if one of them does not end at `to`.
  int Walk(const TableSet& tables, NodeId from, NodeId to) const {
    return Step(tables, from, kNoPort, kInjected, to);
  }
  // Whether any VC-legal path exists.
  bool Reachable(NodeId from, NodeId to) const {
    std::set<std::pair<NodeId, Position>> seen{{from, kInjected}};
    std::vector<std::pair<NodeId, Position>> queue{{from, kInjected}};
    while (!queue.empty()) {
      const auto [node, position] = queue.back();
      queue.pop_back();
      if (node == to) return true;
      for (int p = 0; p < kLinkPorts; ++p) {
        const PortId port = static_cast<PortId>(p);
        const Position next = NextPosition(position, port);
        if (next == kNoPosition || !Alive(node, port)) continue;
        const std::pair<NodeId, Position> place{topology_.Peer(node, port).node, next};
        if (seen.insert(place).second) queue.push_back(place);
      }
    }
    return false;
  }

 private:
  int Step(const TableSet& tables, NodeId at, PortId in_port, Position position, NodeId to) const {
    if (at == to) return 0;
    const RouteTable& table =
        in_port == kNoPort ? *tables[at]->source_direct : *tables[at]->port_direct[in_port];
    const PortMask mask =
        topology_.supernode_of(at) == topology_.supernode_of(to)
            ? table.intra[static_cast<std::size_t>(topology_.hub_in_supernode(to))]
            : table.inter[static_cast<std::size_t>(topology_.supernode_of(to))];
    int longest = -1;
    for (int p = 0; p < kLinkPorts; ++p) {
      const PortId port = static_cast<PortId>(p);
      if (!(mask & PortBit(port))) continue;
      const Position next = NextPosition(position, port);
      if (next == kNoPosition || !Alive(at, port)) return -1;
      const LinkEnd peer = topology_.Peer(at, port);
      const int rest = Step(tables, peer.node, peer.port, next, to);
      if (rest < 0) return -1;
      longest = std::max(longest, rest + 1);
    }
    return longest;
  }

  const Topology& topology_;
  const Failures& failures_;
};

}  // namespace percs::test
