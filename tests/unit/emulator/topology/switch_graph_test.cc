#include "emulator/topology/switch_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>

namespace percs {
namespace {

using ::testing::HasSubstr;

SwitchGraph Made(const GraphSpec& spec) {
  auto graph = SwitchGraph::Create(spec);
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *std::move(graph);
}

std::string Refusal(const GraphSpec& spec) {
  return std::string(SwitchGraph::Create(spec).status().message());
}

GraphSpec Torus(std::vector<int> dims) {
  return {.kind = GraphSpec::Kind::kTorus, .dims = std::move(dims)};
}
GraphSpec Hyperx(std::vector<int> dims) {
  return {.kind = GraphSpec::Kind::kHyperx, .dims = std::move(dims)};
}
GraphSpec FatTree(int levels, int radix, int taper = 1) {
  return {.kind = GraphSpec::Kind::kFatTree, .levels = levels, .radix = radix, .taper = taper};
}

int LinksOf(const SwitchGraph& graph, NodeId node) {
  int links = 0;
  for (PortId port = 0; port < SwitchGraph::kPortsMax; ++port)
    links += graph.Peer(node, port).node != kNoNode;
  return links;
}

// The hops of the planned route that takes the first port everywhere, with VCs as packets take
// them; -1: it does not arrive.
int Hops(const SwitchGraph& graph, NodeId from, NodeId to) {
  PortId in = kNoPort;
  VcId vc = 0;
  for (int hops = 0; hops < 1000; ++hops) {
    if (from == to) return hops;
    const PortMask ports = graph.Planned(from, to);
    if (ports == 0) return -1;
    const auto out = static_cast<PortId>(std::countr_zero(ports));
    vc = graph.NextVc(from, in, vc, out, false);
    if (vc >= SwitchGraph::kDetourVc) return -1;
    const SwitchGraph::Far far = graph.Peer(from, out);
    if (far.node == kNoNode) return -1;
    from = far.node;
    in = far.port;
  }
  return -1;
}

TEST(SwitchGraphTest, EveryLinkLeadsBack) {
  for (const GraphSpec& spec :
       {Torus({5}), Torus({4, 3, 2}), Hyperx({4, 5}), FatTree(3, 8), FatTree(3, 8, 2)}) {
    const SwitchGraph graph = Made(spec);
    for (NodeId node = 0; node < graph.switches(); ++node) {
      for (PortId port = 0; port < SwitchGraph::kPortsMax; ++port) {
        const SwitchGraph::Far far = graph.Peer(node, port);
        if (far.node == kNoNode) continue;
        EXPECT_NE(far.node, node);
        EXPECT_EQ(graph.Peer(far.node, far.port).node, node);
        EXPECT_EQ(graph.Peer(far.node, far.port).port, port);
      }
    }
  }
}

TEST(SwitchGraphTest, ATorusGoesTheShorterWayRoundEachRing) {
  const SwitchGraph graph = Made(Torus({6, 4, 2}));
  ASSERT_EQ(graph.switches(), 48u);
  EXPECT_EQ(graph.name(47), "s5-3-1");
  EXPECT_EQ(LinksOf(graph, 0), 5);  // two rings, and one link of the pair
  const auto ring = [](int a, int b, int size) {
    const int forward = (b - a + size) % size;
    return std::min(forward, size - forward);
  };
  for (NodeId from = 0; from < 48; ++from) {
    for (NodeId to = 0; to < 48; ++to) {
      const auto at = [](NodeId node) {
        const int n = static_cast<int>(node);
        return std::array<int, 3>{n % 6, n / 6 % 4, n / 24};
      };
      const auto a = at(from), b = at(to);
      EXPECT_EQ(Hops(graph, from, to), ring(a[0], b[0], 6) + ring(a[1], b[1], 4) + (a[2] != b[2]));
    }
  }
}

TEST(SwitchGraphTest, AHyperxTakesOneHopForEachDimensionThatDiffers) {
  const SwitchGraph graph = Made(Hyperx({4, 5, 2}));
  EXPECT_EQ(LinksOf(graph, 7), 3 + 4 + 1);
  for (NodeId from = 0; from < graph.switches(); ++from) {
    for (NodeId to = 0; to < graph.switches(); ++to) {
      const int differ =
          (from % 4 != to % 4) + (from / 4 % 5 != to / 4 % 5) + (from / 20 != to / 20);
      EXPECT_EQ(Hops(graph, from, to), differ);
    }
  }
}

TEST(SwitchGraphTest, AFatTreeGoesUpOnlyAsFarAsItMust) {
  const SwitchGraph graph = Made(FatTree(3, 8));
  EXPECT_EQ(graph.leaves(), 16u);
  EXPECT_EQ(graph.switches(), 48u);
  EXPECT_EQ(graph.name(0), "l1-s0");
  EXPECT_EQ(graph.name(47), "l3-s15");
  EXPECT_EQ(LinksOf(graph, 0), 4);
  EXPECT_EQ(LinksOf(graph, 20), 8);
  EXPECT_EQ(LinksOf(graph, 47), 4);
  for (NodeId from = 0; from < 16; ++from) {
    for (NodeId to = 0; to < 16; ++to)
      EXPECT_EQ(Hops(graph, from, to), from == to ? 0 : from / 4 == to / 4 ? 2 : 4);
  }
  EXPECT_EQ(std::popcount(graph.Planned(0, 15)), 4) << "every way up leads there";
  EXPECT_EQ(graph.Planned(0, 20), 0u) << "only leaves have planned routes";
}

TEST(SwitchGraphTest, ATaperedFatTreeHasFewerWaysUp) {
  const SwitchGraph graph = Made(FatTree(3, 8, 2));
  EXPECT_EQ(graph.leaves(), 16u);
  EXPECT_EQ(graph.switches(), 16u + 8 + 8);
  EXPECT_EQ(LinksOf(graph, 0), 2);
  for (NodeId from = 0; from < 16; ++from) {
    for (NodeId to = 0; to < 16; ++to)
      EXPECT_EQ(Hops(graph, from, to), from == to ? 0 : from / 4 == to / 4 ? 2 : 4);
  }
}

TEST(SwitchGraphTest, GoingRoundARingChangesTheChannel) {
  const SwitchGraph graph = Made(Torus({4, 3}));
  // Forward by port 0, so in by port 1; from 3 to 0 the ring closes.
  EXPECT_EQ(graph.NextVc(2, kNoPort, 0, 0, false), 0);
  EXPECT_EQ(graph.NextVc(3, 1, 0, 0, false), 0);
  EXPECT_EQ(graph.NextVc(0, 1, 0, 0, false), 1);
  EXPECT_EQ(graph.NextVc(1, 1, 1, 0, false), 1);
  EXPECT_EQ(graph.NextVc(0, 1, 1, 0, false), SwitchGraph::kNoVc) << "twice round";
  EXPECT_EQ(graph.NextVc(1, 1, 1, 2, false), 0) << "the next dimension begins with VC 0";
  EXPECT_EQ(graph.NextVc(1, 3, 0, 0, false), SwitchGraph::kNoVc) << "no dimension comes again";
}

TEST(SwitchGraphTest, ADetourGoesUpAndThenDownAndStaysOnItsChannel) {
  const SwitchGraph graph = Made(Torus({4}));  // 3 is the root, then 0 and 2, then 1
  EXPECT_TRUE(graph.Up(0, 3));
  EXPECT_FALSE(graph.Up(3, 0));
  EXPECT_EQ(graph.NextVc(1, kNoPort, 0, 0, true), 2);
  EXPECT_EQ(graph.NextVc(2, 1, 2, 0, true), 2) << "up, up";
  EXPECT_EQ(graph.NextVc(3, 1, 2, 0, true), 2) << "up, down";
  EXPECT_EQ(graph.NextVc(0, 1, 2, 0, true), 2) << "down, down";
  EXPECT_EQ(graph.NextVc(1, 1, 2, 0, true), SwitchGraph::kNoVc) << "down, up";
  EXPECT_EQ(graph.NextVc(1, 1, 2, 0, false), SwitchGraph::kNoVc) << "not back to planned routes";
  EXPECT_EQ(graph.NextVc(1, 1, 1, 0, true), 2) << "from a planned route to a detour";
}

TEST(SwitchGraphTest, ListedLinksTakeTheNextPortOfTheirClass) {
  const SwitchGraph graph =
      Made({.kind = GraphSpec::Kind::kListed,
            .names = {"a", "b", "c"},
            .links = {{0, 1, LinkClass::kLr}, {0, 1, LinkClass::kLl}, {1, 2, LinkClass::kLr}}});
  EXPECT_EQ(graph.Peer(0, kLrFirst).node, 1u);
  EXPECT_EQ(graph.Peer(0, kLlFirst).node, 1u);
  EXPECT_EQ(graph.Peer(1, kLrFirst + 1).node, 2u);
  EXPECT_EQ(graph.Planned(0, 2), 0u);
}

TEST(SwitchGraphTest, SizesThatDoNotFitAreRefusedWithTheArithmetic) {
  EXPECT_THAT(Refusal(Torus({})), HasSubstr("0 dimensions; write 1 to 6"));
  EXPECT_THAT(Refusal(Torus({4, 1})), HasSubstr("1 is outside 2..4096"));
  EXPECT_THAT(Refusal(Torus({64, 65})), HasSubstr("4160 switches; write sizes that give at most"));
  EXPECT_THAT(Refusal(Hyperx({16, 18})), HasSubstr("15 + 17 = 32 links per switch"));
  EXPECT_TRUE(SwitchGraph::Create(Hyperx({16, 17})).ok());
  EXPECT_THAT(Refusal(Torus({4096})),
              HasSubstr("2048 links from s4095 to s2047; write sizes that give at most 120"));
  EXPECT_TRUE(SwitchGraph::Create(Torus({4, 4, 4, 4, 4, 4})).ok());
  EXPECT_THAT(Refusal(FatTree(1, 8)), HasSubstr("topology.levels: 1 is outside 2..6"));
  EXPECT_THAT(Refusal(FatTree(2, 7)), HasSubstr("7 is no even number"));
  EXPECT_THAT(Refusal(FatTree(2, 8, 3)), HasSubstr("3 does not divide the 8 / 2 = 4 ports"));
  EXPECT_THAT(Refusal(FatTree(2, 32)), HasSubstr("16 + 16 = 32 links per switch"));
  EXPECT_THAT(Refusal(FatTree(6, 30)), HasSubstr("write sizes that give at most 4096"));
  EXPECT_TRUE(SwitchGraph::Create(FatTree(2, 30)).ok());
  EXPECT_TRUE(SwitchGraph::Create(FatTree(6, 2)).ok());
}

TEST(SwitchGraphTest, WhatLinksDoNotJoinIsNamed) {
  EXPECT_THAT(Refusal({.kind = GraphSpec::Kind::kListed,
                       .names = {"a", "b", "c"},
                       .links = {{0, 1, LinkClass::kLr}}}),
              HasSubstr("no links join c to b"));
  EXPECT_THAT(Refusal({.kind = GraphSpec::Kind::kListed,
                       .names = {"a", "b"},
                       .links = {{0, 1, LinkClass::kLr}, {1, 1, LinkClass::kLr}}}),
              HasSubstr("a link joins b to itself"));
  EXPECT_THAT(Refusal({.kind = GraphSpec::Kind::kListed,
                       .names = {"a", "b"},
                       .links = std::vector<SwitchLink>(8, {0, 1, LinkClass::kLl})}),
              HasSubstr("a has more than 7 links of class ll"));
}

}  // namespace
}  // namespace percs
