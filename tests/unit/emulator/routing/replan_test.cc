// Planning again after a failure: only what it touches, and the same tables as a plan from scratch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "emulator/base/random.h"
#include "emulator/routing/planner.h"
#include "tests/support/seed.h"

namespace percs {
namespace {

TopologySpec RandomSpecToReplan(RandomStream* random) {
  TopologySpec spec;
  do {
    spec = {1 + static_cast<int>(random->Below(6)), 1 + static_cast<int>(random->Below(3)),
            1 + static_cast<int>(random->Below(4)), 1 + static_cast<int>(random->Below(4))};
  } while (!Topology::Create(spec).ok());
  return spec;
}

// One link or hub goes or comes back; now and then several at once.
void Change(const Topology& topology, RandomStream* random, Failures* failures) {
  const std::vector<LinkEnd> links = topology.Links();
  do {
    if (links.empty() || random->Below(6) == 0) {
      const NodeId hub = random->Below(topology.nodes());
      if (failures->hubs.erase(hub) == 0) failures->hubs.insert(hub);
    } else {
      const LinkEnd& link = links[random->Below(static_cast<std::uint32_t>(links.size()))];
      const std::pair end(link.node, link.port);
      if (failures->links.erase(end) == 0) failures->links.insert(end);
    }
  } while (random->Below(4) == 0);
}

std::string FirstDifference(const Topology& topology, const TableSet& a, const TableSet& b) {
  for (NodeId node = 0; node < topology.nodes(); ++node) {
    const HubTables &x = *a[node], &y = *b[node];
    bool same = *x.source_direct == *y.source_direct && *x.source_striped == *y.source_striped &&
                *x.source_indirect == *y.source_indirect && x.closed_middles == y.closed_middles;
    for (std::size_t port = 0; same && port < kLinkPorts; ++port) {
      same = *x.port_direct[port] == *y.port_direct[port] &&
             *x.port_indirect[port] == *y.port_indirect[port];
    }
    if (!same) return topology.NodeName(node);
  }
  return "";
}

TEST(ReplanProperty, APlanAfterAnyChangesEqualsOneFromScratch) {
  PERCS_TRACE_SEED();
  RandomStream random(test::Seed(), "replan_property");
  for (int round = 0; round < 400; ++round) {
    const Topology topology = Topology::Create(RandomSpecToReplan(&random)).value();
    Planner planner(topology);
    Failures failures;
    for (int change = 0; change < 6; ++change) {
      const TableSet& tables = planner.Replan(failures);
      ASSERT_EQ(FirstDifference(topology, tables, planner.Plan(failures)), "")
          << "round " << round << ", change " << change;
      Change(topology, &random, &failures);
    }
  }
}

TEST(Replan, HubsThatAFailureDoesNotTouchKeepTheirTables) {
  const Topology topology = Topology::Create({4, 2, 4, 2}).value();
  Planner planner(topology);
  const TableSet whole = planner.Replan({});
  const LinkEnd inside{0, kLrFirst};
  ASSERT_TRUE(topology.connected(inside.node, inside.port));
  const TableSet& cut = planner.Replan({{{inside.node, inside.port}}, {}});
  int kept = 0;
  for (NodeId node = 0; node < topology.nodes(); ++node) {
    kept += whole[node]->port_direct == cut[node]->port_direct;
  }
  EXPECT_EQ(kept, 24) << "the other three supernodes";
}

TEST(Replan, ADeadDLinkClosesItsTwoSupernodesAsMiddlesForEachOther) {
  const Topology topology = Topology::Create({4, 1, 4, 1}).value();
  Failures failures;
  for (const LinkEnd& link : topology.Links()) {
    const NodeId peer = topology.Peer(link.node, link.port).node;
    if (topology.supernode_of(link.node) == 1 && topology.supernode_of(peer) == 2) {
      failures.links.insert({link.node, link.port});
    }
  }
  ASSERT_EQ(failures.links.size(), 1u);
  const TableSet tables = Planner(topology).Plan(failures);
  for (NodeId hub = 0; hub < 4; ++hub) {
    EXPECT_THAT(tables[hub]->closed_middles,
                testing::ElementsAre(HubTables::ClosedMiddle(1, 2), HubTables::ClosedMiddle(2, 1)));
    EXPECT_TRUE(tables[hub]->Closed(1, 2));
    EXPECT_FALSE(tables[hub]->Closed(1, 3));
  }
  EXPECT_EQ(tables[4]->source_indirect->inter[2], 0u) << "closed for supernode 1 itself";
}

TEST(Replan, StripedTablesTakeEveryParallelDLink) {
  const Topology topology = Topology::Create({2, 1, 4, 3}).value();  // hubs 0 to 2 own one each
  const TableSet tables = Planner(topology).Plan({});
  EXPECT_EQ(tables[0]->source_direct->inter[1], PortBit(kDFirst));
  EXPECT_EQ(tables[0]->source_striped->inter[1],
            PortBit(kDFirst) | PortBit(topology.LPort(0, 1)) | PortBit(topology.LPort(0, 2)));
  EXPECT_EQ(tables[3]->source_striped->inter[1], tables[3]->source_direct->inter[1]);
}

}  // namespace
}  // namespace percs
