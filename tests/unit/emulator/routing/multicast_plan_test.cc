// Method: trees planned for random groups in random broken fabrics must pass the checker, which is
// tried in turn with every kind of entry it has to refuse.
#include "emulator/routing/multicast_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "emulator/base/random.h"
#include "emulator/routing/legal_reach.h"
#include "fmt/format.h"
#include "tests/support/seed.h"
#include "tests/support/topologies.h"

namespace percs {
namespace {

using testing::HasSubstr;

TopologySpec WithGroup(TopologySpec spec, std::string source, std::vector<std::string> members) {
  spec.multicast.push_back({"all", std::move(source), std::move(members)});
  return spec;
}

// The set with another entry of group 0 at a hub.
TableSet With(TableSet tables, NodeId node, PortMask entry) {
  auto hub = std::make_shared<HubTables>(*tables[node]);
  hub->multicast[0] = entry;
  tables[node] = hub;
  return tables;
}

std::string RefusalOf(const Topology& topology, const TableSet& tables) {
  const auto report = CheckTables(topology, {}, tables, VcPolicy::kPosition);
  return report.ok() ? "accepted" : std::string(report.status().message());
}

TEST(MulticastPlan, RandomGroupsInBrokenFabricsAreTreesThatReachWhateverCanBeReached) {
  PERCS_TRACE_SEED();
  RandomStream random(test::Seed(), "multicast");
  std::uint64_t unreachable = 0;
  for (int round = 0; round < 200; ++round) {
    TopologySpec spec;
    spec.supernodes = 1 + static_cast<int>(random.Below(4));
    spec.drawers = 1 + static_cast<int>(random.Below(3));
    spec.hubs = 2 + static_cast<int>(random.Below(3));
    spec.d_links_per_pair = 1 + static_cast<int>(random.Below(2));
    const Topology plain = Make(spec);
    for (int g = 0; g < 3; ++g) {
      MulticastSite group{fmt::format("g{}", g), plain.NodeName(random.Below(plain.hubs())), {}};
      for (NodeId hub = 0; hub < plain.hubs(); ++hub) {
        if (random.Below(2) == 0) group.members.push_back(plain.NodeName(hub));
      }
      spec.multicast.push_back(group);
    }
    const Topology topology = Make(spec);
    Failures failures;
    const std::uint32_t percent = random.Below(3) == 0 ? 50 : 10;
    for (const LinkEnd& link : topology.Links()) {
      if (random.Below(100) < percent) failures.links.insert({link.node, link.port});
    }
    Planner planner(topology);
    const TableSet tables = planner.Plan(failures);
    const auto report = CheckTables(topology, failures, tables, VcPolicy::kPosition);
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_LE(report->multicast_hops_max, 5);
    unreachable += report->members_unreachable;
    // Replanned step by step it is the same.
    planner.Replan({});
    const TableSet& again = planner.Replan(failures);
    for (NodeId node = 0; node < topology.nodes(); ++node) {
      ASSERT_EQ(again[node]->Hash(), tables[node]->Hash()) << topology.NodeName(node);
    }
  }
  EXPECT_GT(unreachable, 0u);
}

TopologySpec RandomNetworkOfSwitches(RandomStream* random) {
  GraphSpec graph{.kind = static_cast<GraphSpec::Kind>(random->Below(4))};
  if (graph.kind == GraphSpec::Kind::kFatTree) {
    graph.levels = 2 + static_cast<int>(random->Below(2));
  } else if (graph.kind == GraphSpec::Kind::kListed) {
    const NodeId switches = 2 + random->Below(8);
    for (NodeId s = 0; s < switches; ++s) {
      graph.names.push_back(fmt::format("s{}", s));
      if (s > 0) graph.links.push_back({random->Below(s), s});
    }
    for (int more = 0; more < 4; ++more) {
      const NodeId a = random->Below(switches), b = random->Below(switches);
      if (a != b) graph.links.push_back({a, b});
    }
  } else {
    for (std::uint32_t dims = 1 + random->Below(3); dims > 0; --dims)
      graph.dims.push_back(2 + static_cast<int>(random->Below(4)));
  }
  TopologySpec spec;
  EXPECT_TRUE(spec.UseGraph(graph).ok());
  return spec;
}

TEST(MulticastPlan, GroupsOfBrokenNetworksOfSwitchesAreTrees) {
  PERCS_TRACE_SEED();
  RandomStream random(test::Seed(), "multicast of switches");
  std::uint64_t planned = 0, detours = 0, unreachable = 0;
  for (int round = 0; round < 400; ++round) {
    TopologySpec spec = RandomNetworkOfSwitches(&random);
    const Topology plain = Make(spec);
    for (int g = 0; g < 3; ++g) {
      MulticastSite group{fmt::format("g{}", g), plain.NodeName(random.Below(plain.leaves())), {}};
      for (NodeId hub = 0; hub < plain.leaves(); ++hub) {
        if (random.Below(2) == 0) group.members.push_back(plain.NodeName(hub));
      }
      spec.multicast.push_back(group);
    }
    const Topology topology = Make(spec);
    Failures failures;
    const std::vector<LinkEnd> links = topology.Links();
    for (std::uint32_t cuts = random.Below(6); cuts > 0; --cuts) {
      const LinkEnd& link = links[random.Below(static_cast<std::uint32_t>(links.size()))];
      failures.links.insert({link.node, link.port});
    }
    if (random.Below(4) == 0) failures.hubs.insert(random.Below(topology.hubs()));
    const TableSet tables = Planner(topology).Plan(failures);
    const auto report = CheckTables(topology, failures, tables, VcPolicy::kPosition);
    ASSERT_TRUE(report.ok()) << report.status();
    unreachable += report->members_unreachable;
    for (NodeId group = topology.nodes(); group < topology.destinations(); ++group) {
      (tables[0]->Detours(group) ? detours : planned) += 1;
    }
    const std::string bytes = tables[0]->Serialize();
    const auto parsed =
        HubTables::Parse({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(parsed->Hash(), tables[0]->Hash());
  }
  EXPECT_GT(planned, 100u);
  EXPECT_GT(detours, 100u);
  EXPECT_GT(unreachable, 0u);
}

TEST(MulticastPlan, TheCheckerRefusesWhatTurnsUpAgainInANetworkOfSwitches) {
  TopologySpec ring;
  ASSERT_TRUE(ring.UseGraph({.kind = GraphSpec::Kind::kTorus, .dims = {5}}).ok());
  const Topology topology = Make(WithGroup(ring, "s0", {"s1", "s2"}));
  const TableSet good = Planner(topology).Plan({});
  ASSERT_EQ(RefusalOf(topology, good), "accepted");
  EXPECT_FALSE(good[0]->Detours(topology.nodes()));
  const PortId on = good[0]->multicast[0] & PortBit(kLlFirst) ? kLlFirst : kLlFirst + 1;
  EXPECT_EQ(RefusalOf(topology, With(good, 1, HubTables::kDeliverHere)),
            "route tables: multicast group all: its member s2 is not reached");
  // All the way round, past the place where a packet that goes on has to be on VC 1.
  TableSet round = good;
  for (NodeId node = 0; node < 5; ++node) {
    const bool member = node == 1 || node == 2;
    round = With(round, node, PortBit(on) | (member ? HubTables::kDeliverHere : 0));
  }
  EXPECT_THAT(RefusalOf(topology, round), HasSubstr("is not a tree: s0 is reached from s0"));
}

TEST(MulticastPlan, CrossesADLinkOnceAndFansOutBehindIt) {
  const Topology topology = Make(WithGroup({2, 2, 4, 1}, "sn0-d0-h0", {}));
  const TableSet tables = Planner(topology).Plan({});
  int crossings = 0, deliveries = 0;
  for (NodeId node = 0; node < topology.hubs(); ++node) {
    const PortMask entry = tables[node]->multicast[0];
    deliveries += (entry & HubTables::kDeliverHere) != 0;
    for (PortId port = kDFirst; port < kHfiFirst; ++port) crossings += (entry & PortBit(port)) != 0;
  }
  EXPECT_EQ(crossings, 1);
  EXPECT_EQ(deliveries, 15);
}

TEST(MulticastPlan, HubsThatAReplanDoesNotTouchKeepTheirTables) {
  const Topology topology = Make(WithGroup({2, 1, 4, 1}, "sn0-d0-h0", {"sn0-d0-h1", "sn1-d0-h2"}));
  Planner planner(topology);
  const TableSet before = planner.Replan({});
  const LinkEnd link = *topology.ParseLink("sn0-d0-h0/sn0-d0-h1");
  const TableSet after = planner.Replan({{{link.node, link.port}}, {}});
  EXPECT_NE(before[0], after[0]);
  EXPECT_EQ(before[6], after[6]);
}

TEST(MulticastPlan, TheCheckerRefusesWhatIsNoTreeToTheMembers) {
  const Topology topology = Make(WithGroup({2, 1, 4, 1}, "sn0-d0-h0", {"sn0-d0-h1", "sn1-d0-h2"}));
  const TableSet good = Planner(topology).Plan({});
  ASSERT_EQ(RefusalOf(topology, good), "accepted");
  const PortId to1 = topology.LPort(0, 1), to2 = topology.LPort(0, 2);
  EXPECT_EQ(RefusalOf(topology, With(good, 0, PortBit(to1))),
            "route tables: multicast group all: its member sn1-d0-h2 is not reached");
  EXPECT_EQ(RefusalOf(topology, With(good, 0, good[0]->multicast[0] | HubTables::kDeliverHere)),
            "route tables: multicast group all: delivers to sn0-d0-h0, which is not a member");
  EXPECT_EQ(RefusalOf(topology, With(good, 0, good[0]->multicast[0] | PortBit(to2))),
            "route tables: multicast group all: leads to sn0-d0-h2, which has no entry for it");
  EXPECT_EQ(
      RefusalOf(topology, With(good, 1, HubTables::kDeliverHere | PortBit(topology.LPort(1, 0)))),
      "route tables: multicast group all: is not a tree: sn0-d0-h0 is reached from sn0-d0-h0 and "
      "from "
      "sn0-d0-h1");
  EXPECT_THAT(RefusalOf(topology, With(good, 1, HubTables::kDeliverHere | PortBit(kDFirst + 15))),
              HasSubstr("which is not a live link"));
  auto short_table = std::make_shared<HubTables>(*good[3]);
  short_table->multicast.clear();
  TableSet holes = good;
  holes[3] = short_table;
  EXPECT_EQ(RefusalOf(topology, holes),
            "route tables: sn0-d0-h3 has 0 multicast entries, but there are 1 groups");
}

TEST(MulticastPlan, GroupsAreRefusedByName) {
  const auto error = [](std::string source, std::vector<std::string> members) {
    return std::string(Topology::Create(WithGroup({1, 1, 2}, std::move(source), std::move(members)))
                           .status()
                           .message());
  };
  EXPECT_THAT(error("sn0-d0-h7", {}),
              HasSubstr("multicast group all, source: no hub is named \"sn0-d0-h7\""));
  EXPECT_THAT(error("sn0-d0-h0", {"sn3-d0-h1"}),
              HasSubstr("multicast group all, member: no hub is named \"sn3-d0-h1\""));
  EXPECT_EQ(error("sn0-d0-h0", {"sn0-d0-h1", "sn0-d0-h1"}),
            "multicast group all: sn0-d0-h1 is a member twice");
  TopologySpec tree;
  ASSERT_TRUE(tree.UseGraph({.kind = GraphSpec::Kind::kFatTree}).ok());
  EXPECT_EQ(Topology::Create(WithGroup(tree, "l1-s0", {"l2-s1"})).status().message(),
            "multicast group all, member: l2-s1 has no endpoints; only leaves send and receive "
            "multicasts");
  EXPECT_THAT(std::string(CheckMulticastTableSize(300, 256).message()),
              HasSubstr("write at least 300"));
}

}  // namespace
}  // namespace percs
