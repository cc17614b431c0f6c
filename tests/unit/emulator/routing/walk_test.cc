// Follows the tables as a packet would, on fabrics without failures.
#include <gtest/gtest.h>

#include "emulator/routing/planner.h"

namespace percs {
namespace {

using Tables = std::vector<std::shared_ptr<const HubTables>>;

// Hops of the longest walk from `at` to `to` over every choice; fails the test on a bad walk.
int Walk(const Topology& topology, const Tables& tables, NodeId at, int in_port, Position position,
         NodeId to) {
  if (at == to) return 0;
  const HubTables& hub = *tables[at];
  const RouteTable& table =
      in_port < 0 ? *hub.source_direct : *hub.port_direct[static_cast<std::size_t>(in_port)];
  const PortMask mask = topology.supernode_of(at) == topology.supernode_of(to)
                            ? table.intra[static_cast<std::size_t>(topology.hub_in_supernode(to))]
                            : table.inter[static_cast<std::size_t>(topology.supernode_of(to))];
  EXPECT_NE(mask, 0u) << topology.NodeName(at) << " has no route to " << topology.NodeName(to);
  int longest = 0;
  for (int p = 0; p < kLinkPorts; ++p) {
    const PortId port = static_cast<PortId>(p);
    if (!(mask & PortBit(port))) continue;
    const Position next = NextPosition(position, port);
    const LinkEnd peer = topology.Peer(at, port);
    EXPECT_NE(next, kNoPosition);
    EXPECT_NE(peer.node, kNoNode);
    if (next == kNoPosition || peer.node == kNoNode) continue;
    longest = std::max(longest, 1 + Walk(topology, tables, peer.node, peer.port, next, to));
  }
  return longest;
}

TEST(Planner, EveryPairIsReachedInAtMostThreeHops) {
  for (const TopologySpec& spec : std::vector<TopologySpec>{{1, 1, 2, 1},
                                                            {2, 1, 1, 1},
                                                            {2, 1, 1, 16},
                                                            {1, 4, 8, 1},
                                                            {2, 2, 3, 1},
                                                            {3, 4, 8, 7},
                                                            {5, 1, 3, 2},
                                                            {9, 2, 2, 8}}) {
    const auto topology = Topology::Create(spec);
    ASSERT_TRUE(topology.ok()) << topology.status();
    const Tables tables = Planner(*topology).Plan({});
    for (NodeId a = 0; a < topology->nodes(); ++a) {
      for (NodeId b = 0; b < topology->nodes(); ++b) {
        const bool same = topology->supernode_of(a) == topology->supernode_of(b);
        ASSERT_LE(Walk(*topology, tables, a, -1, kInjected, b), same ? 1 : 3);
      }
    }
  }
}

TEST(Planner, SourcePicksEveryExitHubAndOwnLinksFirst) {
  const auto topology = Topology::Create({2, 1, 4, 6});
  ASSERT_TRUE(topology.ok());
  const Tables tables = Planner(*topology).Plan({});
  // Six links over four hubs: hubs 0 and 1 own two each.
  EXPECT_EQ(tables[0]->source_direct->inter[1], PortBit(kDFirst) | PortBit(kDFirst + 1));
  EXPECT_EQ(tables[3]->source_direct->inter[1], PortBit(kDFirst));
}

}  // namespace
}  // namespace percs
