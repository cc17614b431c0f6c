#include "emulator/routing/graph_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>

#include "emulator/base/random.h"
#include "fmt/format.h"
#include "tests/support/seed.h"
#include "tests/support/topologies.h"

namespace percs {
namespace {

using ::testing::HasSubstr;

TopologySpec Of(const GraphSpec& graph) {
  TopologySpec spec;
  EXPECT_TRUE(spec.UseGraph(graph).ok());
  return spec;
}
TopologySpec Torus(std::vector<int> dims) {
  return Of({.kind = GraphSpec::Kind::kTorus, .dims = std::move(dims)});
}
TopologySpec Hyperx(std::vector<int> dims) {
  return Of({.kind = GraphSpec::Kind::kHyperx, .dims = std::move(dims)});
}
TopologySpec FatTree(int levels, int radix, int taper = 1) {
  return Of({.kind = GraphSpec::Kind::kFatTree, .levels = levels, .radix = radix, .taper = taper});
}

void Cut(const Topology& topology, LinkEnd end, Failures* failures) {
  const LinkEnd far = topology.Peer(end.node, end.port);
  failures->links.insert(std::min(std::pair(end.node, end.port), std::pair(far.node, far.port)));
}

CheckReport Checked(const Topology& topology, const Failures& failures, const TableSet& tables) {
  const auto report = CheckTables(topology, failures, tables, VcPolicy::kPosition);
  EXPECT_TRUE(report.ok()) << report.status();
  return report.ok() ? *report : CheckReport();
}

TEST(GraphPlanTest, AnIntactNetworkServesEveryPairByPlannedRoutes) {
  const std::vector<std::pair<TopologySpec, int>> machines = {
      {Torus({5}), 2},       {Torus({2}), 1},     {Torus({4, 3, 2}), 4}, {Torus({8, 8}), 8},
      {Hyperx({4, 5}), 2},   {Hyperx({9}), 1},    {FatTree(2, 8), 2},    {FatTree(3, 8), 4},
      {FatTree(3, 8, 4), 4}, {FatTree(2, 30), 2}, {FatTree(6, 2), 10}};
  for (const auto& [spec, hops] : machines) {
    const Topology topology = Make(spec);
    const TableSet tables = Planner(topology).Plan({});
    const CheckReport report = Checked(topology, {}, tables);
    EXPECT_EQ(report.unreachable_pairs, 0u);
    if (spec.graph->kind != GraphSpec::Kind::kFatTree) {
      EXPECT_EQ(report.hops_max, hops);
      EXPECT_TRUE(tables[0]->detours.empty());
    }
  }
}

TEST(GraphPlanTest, OnlyDestinationsThatNeedACutLinkHaveDetours) {
  const Topology topology = Make(Hyperx({4, 4}));
  Failures failures;
  Cut(topology, *topology.ParseLink("s1-2/s3-2"), &failures);
  const TableSet tables = Planner(topology).Plan(failures);
  // The first dimension is crossed first, in the row of the source.
  const auto node = [&](const char* name) { return *topology.ParseNode(name); };
  for (NodeId to = 0; to < 16; ++to) {
    const NodeId column = to % 4;
    EXPECT_EQ(tables[0]->Detours(to), column == 1 || column == 3) << topology.NodeName(to);
  }
  EXPECT_EQ(Checked(topology, failures, tables).unreachable_pairs, 0u);
  EXPECT_EQ(tables[node("s1-2")]->source_direct->intra[node("s3-2")] &
                PortBit(topology.ParseLink("s1-2/s3-2")->port),
            0u);
}

TEST(GraphPlanTest, AFatTreeLosesOneOfItsWaysUp) {
  const Topology topology = Make(FatTree(2, 8));
  Failures failures;
  Cut(topology, *topology.ParseLink("l1-s0/l2-s1"), &failures);
  const TableSet tables = Planner(topology).Plan(failures);
  EXPECT_FALSE(tables[0]->Detours(0));
  EXPECT_EQ(std::popcount(tables[0]->source_direct->intra[3]), 3);
  EXPECT_EQ(std::popcount(tables[3]->source_direct->intra[0]), 3) << "not to where it ends";
  EXPECT_EQ(std::popcount(tables[3]->source_direct->intra[1]), 4);
  EXPECT_EQ(Checked(topology, failures, tables).unreachable_pairs, 0u);
}

TEST(GraphPlanTest, AnythingMayBreak) {
  PERCS_TRACE_SEED();
  RandomStream random(test::Seed(), "failures of graphs");
  for (const TopologySpec& spec :
       {Torus({6}), Torus({4, 4}), Torus({3, 3, 3}), Hyperx({4, 4}), Hyperx({3, 3, 3}),
        FatTree(2, 8), FatTree(3, 6), FatTree(3, 4, 2)}) {
    const Topology topology = Make(spec);
    const std::vector<LinkEnd> links = topology.Links();
    Planner planner(topology);
    for (int trial = 0; trial < 40; ++trial) {
      SCOPED_TRACE(trial);
      Failures failures;
      for (std::uint64_t cuts = random.Below(6); cuts > 0; --cuts)
        Cut(topology, links[random.Below(static_cast<std::uint32_t>(links.size()))], &failures);
      if (random.Below(3) == 0) failures.hubs.insert(random.Below(topology.hubs()));
      const TableSet& tables = planner.Replan(failures);
      Checked(topology, failures, tables);
      const TableSet again = Planner(topology).Plan(failures);
      for (NodeId node = 0; node < topology.hubs(); ++node)
        ASSERT_EQ(tables[node]->Hash(), again[node]->Hash());
    }
  }
}

TEST(GraphPlanTest, WhatAReplanDoesNotTouchKeepsItsTables) {
  const Topology topology = Make(FatTree(2, 8));
  Planner planner(topology);
  const TableSet before = planner.Replan({});
  Failures failures;
  Cut(topology, *topology.ParseLink("l1-s0/l2-s1"), &failures);
  const TableSet cut = planner.Replan(failures);
  EXPECT_NE(before[0], cut[0]);
  EXPECT_EQ(planner.Replan(failures), cut);
}

TEST(GraphPlanTest, OneChannelForATorusIsRefusedWithTheCycle) {
  const Topology topology = Make(Torus({5}));
  const auto report = CheckTables(topology, {}, Planner(topology).Plan({}), VcPolicy::kSingle);
  ASSERT_FALSE(report.ok());
  EXPECT_THAT(std::string(report.status().message()),
              HasSubstr("a cycle of channels: s1:LL1 VC0 > s0:LL1 VC0 > s4:LL1 VC0 > s3:LL1 VC0 > "
                        "s2:LL1 VC0 > s1:LL1 VC0"));
}

TEST(GraphPlanTest, TablesThatAreWrongAreRefusedWithAWitness) {
  const Topology topology = Make(Torus({5}));
  const TableSet good = Planner(topology).Plan({});
  const auto wrong = [&](NodeId node, NodeId to, PortMask mask) {
    TableSet tables = good;
    auto table = std::make_shared<RouteTable>(*good[node]->source_direct);
    table->intra[to] = mask;
    auto hub = std::make_shared<HubTables>(*good[node]);
    hub->source_direct = table;
    hub->port_direct.fill(table);
    tables[node] = hub;
    const auto report = CheckTables(topology, {}, tables, VcPolicy::kPosition);
    return report.ok() ? fmt::format("{} unreachable", report->unreachable_pairs)
                       : std::string(report.status().message());
  };
  EXPECT_THAT(wrong(1, 2, 0), HasSubstr("s0 > s1 has no route, on the way to s2"));
  EXPECT_THAT(wrong(1, 2, PortBit(2)), HasSubstr("s1:LL2, which is not a live link"));
  EXPECT_THAT(wrong(1, 2, PortBit(1)),
              HasSubstr("s0:LL0, for which no VC is left, on the way to s2"));
  Failures failures;
  Cut(topology, {0, 0}, &failures);
  EXPECT_THAT(
      std::string(CheckTables(topology, failures, good, VcPolicy::kPosition).status().message()),
      HasSubstr("s1 would leave by s1:LL1, which is not a live link, on the way to s0"));
}

TEST(GraphPlanTest, TablesWithDetoursAreWrittenAndRead) {
  const Topology topology = Make(Torus({5}));
  Failures failures;
  Cut(topology, {0, 0}, &failures);
  const auto tables = Planner(topology).Plan(failures)[2];
  ASSERT_FALSE(tables->detours.empty());
  const std::string bytes = tables->Serialize();
  const auto read =
      HubTables::Parse({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->detours, tables->detours);
  EXPECT_EQ(read->Hash(), tables->Hash());
}

}  // namespace
}  // namespace percs
