// Method: the crossing that sets how far windows reach, by arithmetic from the parameters.
#include "emulator/sim/lookahead.h"

#include <gtest/gtest.h>

namespace percs {
namespace {

Topology Two() { return Topology::Create({2, 2, 2, 1}).value(); }

Time Horizon(const Scenario& scenario) { return FindHorizon(Two(), scenario).time; }

// Of credits: 5 ns of LL wire, 200 ns of D wire, 50 ns of processing.
TEST(Lookahead, OnlyDLinksCrossBetweenSupernodes) {
  const Scenario scenario;
  EXPECT_EQ(FindLookahead(Two(), scenario).time, 55 * kNanosecond);
  const Lookahead horizon = FindHorizon(Two(), scenario);
  EXPECT_EQ(horizon.time, 250 * kNanosecond);
  EXPECT_EQ(horizon.source, "credit on D: wire 200ns + credit processing 50ns");
}

TEST(Lookahead, AShorterDCableShortensTheHorizonAndAnLCableDoesNot) {
  Scenario scenario;
  const LinkEnd d = *Two().ParseLink("sn0-d0-h0:D0");
  const LinkEnd l = *Two().ParseLink("sn0-d0-h0/sn0-d1-h0");
  scenario.cables = {{l, kNanosecond}};
  EXPECT_EQ(Horizon(scenario), 250 * kNanosecond);
  scenario.cables = {{d, 400 * kNanosecond}};
  EXPECT_EQ(Horizon(scenario), 250 * kNanosecond);
  scenario.cables = {{d, 30 * kNanosecond}};
  EXPECT_EQ(Horizon(scenario), 80 * kNanosecond);
}

// Whole drawers in each process: 25 ns of LR wire. D cables may be swapped, so their length counts
// even where all that they connect is in one process.
TEST(Lookahead, BetweenProcessesOnlyLinksOfThePlacementCount) {
  Scenario scenario;
  const auto crossing = [&](const std::vector<std::uint16_t>& process_of_node) {
    return FindCrossing(Two(), scenario, process_of_node).time;
  };
  EXPECT_EQ(crossing({0, 1, 2, 3, 4, 5, 6, 7}), 55 * kNanosecond);
  EXPECT_EQ(crossing({0, 0, 1, 1, 2, 2, 3, 3}), 75 * kNanosecond);
  EXPECT_EQ(crossing({0, 0, 0, 0, 1, 1, 1, 1}), 250 * kNanosecond);
  EXPECT_EQ(crossing({0, 0, 0, 0, 0, 0, 0, 0}), 250 * kNanosecond);
  scenario.cables = {{*Two().ParseLink("sn0-d0-h0/sn0-d1-h0"), kNanosecond}};
  EXPECT_EQ(crossing({0, 0, 1, 1, 2, 2, 3, 3}), 51 * kNanosecond);
}

// 50 ns of ISR, a flit of LR or D, and the wire.
TEST(Lookahead, AFlitTakesLongerThanACredit) {
  Scenario scenario;
  const auto flit = [&](const std::vector<std::uint16_t>& process_of_node) {
    return FindCrossing(Two(), scenario, process_of_node).flit;
  };
  EXPECT_EQ(flit({0, 0, 1, 1, 2, 2, 3, 3}), 100'600);
  EXPECT_EQ(flit({0, 0, 0, 0, 1, 1, 1, 1}), 262'800);
  scenario.parameters.management_latency = 90 * kNanosecond;
  EXPECT_EQ(flit({0, 0, 1, 1, 2, 2, 3, 3}), 90 * kNanosecond) << "a packet may raise an alert";
}

TEST(Lookahead, NetworkManagementCrossesToo) {
  Scenario scenario;
  scenario.parameters.management_latency = 90 * kNanosecond;
  EXPECT_EQ(Horizon(scenario), 90 * kNanosecond);
}

// The first switch has no LR link, others do.
TEST(Lookahead, OfSwitchesEveryOneCounts) {
  TopologySpec spec;
  const GraphSpec graph{.kind = GraphSpec::Kind::kListed,
                        .names = {"a", "b", "c"},
                        .links = {{0, 1, LinkClass::kLl}, {1, 2, LinkClass::kLr}}};
  ASSERT_TRUE(spec.UseGraph(graph).ok());
  Scenario scenario;
  scenario.parameters.ll.wire = 40 * kNanosecond;
  scenario.parameters.lr.wire = 0;
  EXPECT_EQ(FindLookahead(Topology::Create(spec).value(), scenario).time, 50 * kNanosecond);
}

}  // namespace
}  // namespace percs
