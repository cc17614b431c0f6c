#include "emulator/routing/planner.h"

#include <gtest/gtest.h>

#include <bit>

#include "emulator/base/random.h"
#include "tests/support/seed.h"
#include "tests/support/topologies.h"
#include "tests/unit/emulator/routing/table_walker.h"

namespace percs {
namespace {

using test::TableSet;
using test::TableWalker;

Failures Cut(const Topology& topology, const std::vector<std::string>& names) {
  Failures failures;
  for (const std::string& name : names) {
    const auto end = topology.ParseLink(name);
    EXPECT_TRUE(end.ok()) << end.status();
    const LinkEnd far = topology.Peer(end->node, end->port);
    failures.links.insert(std::min(std::pair(end->node, end->port), std::pair(far.node, far.port)));
  }
  return failures;
}

TEST(Planner, WholeFabricTakesOneHopInsideAndThreeOutside) {
  for (const TopologySpec& spec : std::vector<TopologySpec>{{1, 1, 2, 1},
                                                            {2, 1, 1, 1},
                                                            {2, 1, 1, 16},
                                                            {1, 4, 8, 1},
                                                            {2, 2, 3, 1},
                                                            {3, 4, 8, 7},
                                                            {5, 1, 3, 2},
                                                            {9, 2, 2, 8}}) {
    const Topology topology = Make(spec);
    const Failures none;
    const TableSet tables = Planner(topology).Plan(none);
    const TableWalker walker(topology, none);
    for (NodeId a = 0; a < topology.nodes(); ++a) {
      for (NodeId b = 0; b < topology.nodes(); ++b) {
        const int hops = walker.Walk(tables, a, b);
        ASSERT_GE(hops, 0) << topology.NodeName(a) << " to " << topology.NodeName(b);
        ASSERT_LE(hops, topology.supernode_of(a) == topology.supernode_of(b) ? 1 : 3);
      }
    }
  }
}

TEST(Planner, SourceTakesItsOwnDLinksOrAllExitHubs) {
  const Topology topology = Make({2, 1, 4, 3});  // hubs 0 to 2 own one D link each
  const TableSet tables = Planner(topology).Plan({});
  EXPECT_EQ(tables[0]->source_direct->inter[1], PortBit(kDFirst));
  EXPECT_EQ(tables[3]->source_direct->inter[1],
            PortBit(kLlFirst) | PortBit(kLlFirst + 1) | PortBit(kLlFirst + 2));
}

// L0 D0 to the middle supernode, L1 D1 to the destination's, L2 to the hub; at most.
int WalkIndirect(const Topology& topology, const TableSet& tables, NodeId at, PortId in_port,
                 Position position, int middle, NodeId to) {
  if (at == to) return 0;
  const int here = topology.supernode_of(at), last = topology.supernode_of(to);
  if (here == middle) middle = last;
  const HubTables& hub = *tables[at];
  const RouteTable& table = in_port == kNoPort ? *hub.source_indirect : *hub.port_indirect[in_port];
  const PortMask mask = here == middle
                            ? table.intra[static_cast<std::size_t>(topology.hub_in_supernode(to))]
                            : table.inter[static_cast<std::size_t>(middle)];
  int longest = -1;
  for (int p = 0; p < kLinkPorts; ++p) {
    const PortId port = static_cast<PortId>(p);
    if (!(mask & PortBit(port))) continue;
    const Position next = NextPosition(position, port);
    const LinkEnd peer = topology.Peer(at, port);
    if (next == kNoPosition || peer.node == kNoNode) return -1;
    const int rest = WalkIndirect(topology, tables, peer.node, peer.port, next, middle, to);
    if (rest < 0) return -1;
    longest = std::max(longest, rest + 1);
  }
  return longest;
}

TEST(Planner, IndirectTablesReachEveryHubOverEveryMiddleSupernode) {
  for (const TopologySpec& spec :
       std::vector<TopologySpec>{{3, 1, 1, 1}, {4, 2, 2, 1}, {4, 1, 3, 5}, {7, 2, 3, 2}}) {
    const Topology topology = Make(spec);
    const TableSet tables = Planner(topology).Plan({});
    for (NodeId a = 0; a < topology.nodes(); ++a) {
      for (NodeId b = 0; b < topology.nodes(); ++b) {
        for (int middle = 0; middle < topology.supernodes(); ++middle) {
          const int from = topology.supernode_of(a), to = topology.supernode_of(b);
          if (from == to || middle == from || middle == to) continue;
          const int hops = WalkIndirect(topology, tables, a, kNoPort, kInjected, middle, b);
          ASSERT_GE(hops, 2);
          ASSERT_LE(hops, 5);
        }
      }
    }
  }
}

TEST(Planner, EqualTablesAreShared) {
  const Topology topology = Make({3, 2, 4, 2});
  const TableSet tables = Planner(topology).Plan({});
  for (const auto& hub : tables) {
    EXPECT_EQ(hub->source_direct, hub->source_indirect);
    EXPECT_EQ(hub->port_direct[kDFirst], hub->port_direct[kDFirst + 15]);
    EXPECT_EQ(hub->port_indirect[kDFirst], hub->source_direct);
  }
}

TEST(Planner, DeadLLinkInsideIsGoneRoundOverEveryThirdHub) {
  const Topology topology = Make({1, 4, 8, 1});
  const TableSet tables = Planner(topology).Plan(Cut(topology, {"sn0-d0-h0/sn0-d2-h4"}));
  const NodeId to = *topology.ParseNode("sn0-d2-h4");
  EXPECT_EQ(std::popcount(tables[0]->source_direct->intra[to]), 30);
  EXPECT_FALSE(tables[0]->source_direct->intra[to] & PortBit(topology.LPort(0, to)));
  EXPECT_EQ(tables[1]->source_direct->intra[to], PortBit(topology.LPort(1, to)));
}

TEST(Planner, DeadLLinkToTheOnlyExitHubTakesLLDL) {
  const Topology topology = Make({3, 1, 4, 1});
  const TableSet whole = Planner(topology).Plan({});
  const NodeId exit = static_cast<NodeId>(std::countr_zero(topology.ExitHubs(0, 1)));
  const NodeId source = exit == 0 ? 1 : 0;
  const Failures failures =
      Cut(topology, {topology.NodeName(source) + "/" + topology.NodeName(exit)});
  const TableSet tables = Planner(topology).Plan(failures);
  EXPECT_EQ(std::popcount(tables[source]->source_direct->inter[1]), 2)
      << "both other hubs of the drawer";
  const TableWalker walker(topology, failures);
  for (int hub = 0; hub < 4; ++hub) {
    const int hops = walker.Walk(tables, source, topology.node(1, hub));
    EXPECT_TRUE(hops == 3 || hops == 4) << hops;
  }
}

TEST(Planner, DeadOnlyDLinkGoesThroughAThirdSupernode) {
  const Topology topology = Make({3, 1, 4, 1});
  const NodeId exit = static_cast<NodeId>(std::countr_zero(topology.ExitHubs(0, 1)));
  Failures failures;
  failures.links.insert({exit, static_cast<PortId>(std::countr_zero(topology.DPorts(exit, 1)))});
  const TableSet tables = Planner(topology).Plan(failures);
  const TableWalker walker(topology, failures);
  for (int a = 0; a < 4; ++a) {
    for (int b = 0; b < 4; ++b) {
      const int hops = walker.Walk(tables, topology.node(0, a), topology.node(1, b));
      EXPECT_GE(hops, 2);
      EXPECT_LE(hops, 5);
    }
  }
  const auto report = CheckTables(topology, failures, tables, VcPolicy::kPosition);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->unreachable_pairs, 0u);
  EXPECT_EQ(report->hops_max, 5);
}

TEST(Planner, UnreachablePairsHaveNoEntry) {
  const Topology topology = Make({1, 1, 2, 1});
  const Failures failures = Cut(topology, {"sn0-d0-h0:LL0"});
  const TableSet tables = Planner(topology).Plan(failures);
  EXPECT_EQ(tables[0]->source_direct->intra[1], 0u);
  const auto report = CheckTables(topology, failures, tables, VcPolicy::kPosition);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->unreachable_pairs, 2u);
  ASSERT_EQ(report->unreachable.size(), 2u);
  EXPECT_EQ(report->unreachable[0].witness, "no live path at all");
}

TopologySpec RandomSpec(RandomStream* random) {
  TopologySpec spec;
  do {
    spec = {1 + static_cast<int>(random->Below(5)), 1 + static_cast<int>(random->Below(3)),
            1 + static_cast<int>(random->Below(4)), 1 + static_cast<int>(random->Below(4))};
  } while (!Topology::Create(spec).ok());
  return spec;
}

Failures RandomFailures(const Topology& topology, RandomStream* random) {
  Failures failures;
  const std::vector<LinkEnd> links = topology.Links();
  const std::uint32_t most = random->Below(2) ? 3 : static_cast<std::uint32_t>(links.size());
  for (std::uint32_t count = random->Below(most + 1); count > 0; --count) {
    const LinkEnd& link = links[random->Below(static_cast<std::uint32_t>(links.size()))];
    if (random->Below(8) == 0) {
      failures.hubs.insert(link.node);
    } else {
      failures.links.insert({link.node, link.port});
    }
  }
  return failures;
}

std::string Describe(const Topology& topology, const Failures& failures) {
  const TopologySpec& spec = topology.spec();
  std::string text = "topology " + std::to_string(spec.supernodes) + "x" +
                     std::to_string(spec.drawers) + "x" + std::to_string(spec.hubs) + ", " +
                     std::to_string(spec.d_links_per_pair) + " D links; down:";
  for (const auto& [node, port] : failures.links) text += " " + topology.LinkName({node, port});
  for (NodeId node : failures.hubs) text += " " + topology.NodeName(node);
  return text;
}

struct Tally {
  std::uint64_t pairs = 0, missing = 0, given_up = 0, detoured = 0, reached_without_path = 0;
  int hops_max = 0;
};

Tally Count(const Topology& topology, const Failures& failures, const TableSet& tables) {
  const TableWalker walker(topology, failures);
  Tally tally;
  for (NodeId a = 0; a < topology.nodes(); ++a) {
    for (NodeId b = 0; b < topology.nodes(); ++b) {
      if (!walker.Alive(a) || !walker.Alive(b)) continue;
      const int hops = walker.Walk(tables, a, b);
      const bool reachable = walker.Reachable(a, b);
      ++tally.pairs;
      tally.missing += hops < 0;
      tally.given_up += hops < 0 && reachable;
      tally.reached_without_path += hops >= 0 && !reachable;
      tally.detoured += hops > 3;
      tally.hops_max = std::max(tally.hops_max, hops);
    }
  }
  return tally;
}

TEST(PlannerProperty, WhatIsReachableIsReachedOverEveryChoiceAndTheCheckerAgrees) {
  PERCS_TRACE_SEED();
  RandomStream random(test::Seed(), "planner_property");
  std::uint64_t pairs = 0, given_up = 0, detoured = 0;
  for (int round = 0; round < 1000; ++round) {
    const Topology topology = Make(RandomSpec(&random));
    const Failures failures = RandomFailures(topology, &random);
    const TableSet tables = Planner(topology).Plan(failures);
    const auto report = CheckTables(topology, failures, tables, VcPolicy::kPosition);
    ASSERT_TRUE(report.ok()) << report.status() << "\n" << Describe(topology, failures);
    const Tally tally = Count(topology, failures, tables);
    ASSERT_EQ(tally.reached_without_path, 0u);
    ASSERT_EQ(report->unreachable_pairs, tally.missing) << Describe(topology, failures);
    ASSERT_GE(report->hops_max, tally.hops_max);
    pairs += tally.pairs;
    given_up += tally.given_up;
    detoured += tally.detoured;
  }
  // With most links down, hubs without a common landing compete for the entry of their supernode.
  EXPECT_LT(given_up, pairs / 100);
  EXPECT_GT(detoured, pairs / 100);
}

// One failure, anywhere, costs no pair that has any legal path left.
TEST(PlannerProperty, EverySingleFailureIsGoneRoundExactly) {
  for (const TopologySpec& spec : std::vector<TopologySpec>{
           {1, 1, 3, 1}, {2, 1, 3, 1}, {2, 2, 3, 9}, {3, 1, 4, 1}, {4, 2, 2, 3}, {6, 1, 3, 2}}) {
    const Topology topology = Make(spec);
    std::vector<Failures> cases;
    for (const LinkEnd& link : topology.Links()) cases.push_back({{{link.node, link.port}}, {}});
    for (NodeId node = 0; node < topology.nodes(); ++node) cases.push_back({{}, {node}});
    for (const Failures& failures : cases) {
      const TableSet tables = Planner(topology).Plan(failures);
      const auto report = CheckTables(topology, failures, tables, VcPolicy::kPosition);
      ASSERT_TRUE(report.ok()) << report.status() << "\n" << Describe(topology, failures);
      const Tally tally = Count(topology, failures, tables);
      ASSERT_EQ(tally.given_up, 0u) << Describe(topology, failures);
      ASSERT_EQ(tally.missing, report->unreachable_pairs);
    }
  }
}

}  // namespace
}  // namespace percs
