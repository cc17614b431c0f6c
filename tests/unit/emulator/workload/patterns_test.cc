// Method: every pattern's whole map on small topologies, against its definition or its property
// (permutation, no fixed point, frequency within a bound that no seed comes near).
#include "emulator/workload/patterns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "tests/support/play.h"
#include "tests/support/seed.h"
#include "tests/support/split_run.h"

namespace percs {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TopologySpec Spec(int supernodes, int drawers, int hubs) { return {supernodes, drawers, hubs, 1}; }

NodeId NodesOf(const TopologySpec& t) {
  return static_cast<NodeId>(t.supernodes * t.drawers * t.hubs);
}

// First destination of every hub; all later ones must be the same.
std::vector<NodeId> FixedMap(const PatternWorkload& w, const TopologySpec& t,
                             std::uint64_t seed = 1) {
  std::vector<NodeId> map;
  for (NodeId n = 0; n < NodesOf(t); ++n) {
    auto p = DestinationPattern::Create(w, t, seed, n);
    EXPECT_TRUE(p.ok()) << p.status();
    if (!p.ok()) return map;
    RandomStream random(seed, "test");
    map.push_back(p->Draw(random));
    EXPECT_EQ(p->Draw(random), map.back());
    EXPECT_EQ(p->silent(), map.back() == kNoNode);
    EXPECT_NE(map.back(), n);
  }
  return map;
}

std::string ErrorOf(const PatternWorkload& w, const TopologySpec& t) {
  auto p = DestinationPattern::Create(w, t, 1, 0);
  EXPECT_EQ(p.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(p.status().message());
}

PatternWorkload Of(Pattern pattern) {
  PatternWorkload w;
  w.pattern = pattern;
  return w;
}

std::vector<int> DestinationCounts(const PatternWorkload& w, const TopologySpec& t, NodeId node,
                                   int draws) {
  auto p = DestinationPattern::Create(w, t, 1, node);
  EXPECT_TRUE(p.ok()) << p.status();
  std::vector<int> counts(NodesOf(t));
  RandomStream random(test::Seed(), "test");
  for (int i = 0; i < draws; ++i) ++counts.at(p->Draw(random));
  return counts;
}

TEST(Patterns, UniformReachesEveryOtherHubAlike) {
  PERCS_TRACE_SEED();
  const std::vector<int> counts =
      DestinationCounts(Of(Pattern::kUniform), Spec(1, 1, 5), 2, 40'000);
  EXPECT_EQ(counts[2], 0);
  for (NodeId n : {0, 1, 3, 4}) EXPECT_NEAR(counts[n], 10'000, 600);
}

TEST(Patterns, HotspotGetsItsShareAndTheUniformPart) {
  PERCS_TRACE_SEED();
  PatternWorkload w = Of(Pattern::kHotspot);
  w.hotspot = 3;
  w.hotspot_fraction = 0.5;
  const std::vector<int> counts = DestinationCounts(w, Spec(1, 1, 5), 0, 40'000);
  EXPECT_EQ(counts[0], 0);
  EXPECT_NEAR(counts[3], 25'000, 700);  // a half, and a quarter of the other half
  EXPECT_NEAR(counts[1], 5'000, 500);
  const std::vector<int> own = DestinationCounts(w, Spec(1, 1, 5), 3, 40'000);
  EXPECT_EQ(own[3], 0);
  EXPECT_NEAR(own[0], 10'000, 600);
}

TEST(Patterns, HotspotFractionsZeroAndOneAreExact) {
  PatternWorkload w = Of(Pattern::kHotspot);
  w.hotspot = 1;
  w.hotspot_fraction = 1;
  EXPECT_EQ(DestinationCounts(w, Spec(1, 1, 4), 0, 1000)[1], 1000);
  w.hotspot_fraction = 0;
  EXPECT_LT(DestinationCounts(w, Spec(1, 1, 4), 0, 1000)[1], 600);
}

TEST(Patterns, NeighborIsTheNextHubAndWraps) {
  EXPECT_THAT(FixedMap(Of(Pattern::kNeighbor), Spec(1, 1, 4)), ElementsAre(1, 2, 3, 0));
}

TEST(Patterns, TornadoGoesHalfWayRoundHubsOrSupernodes) {
  EXPECT_THAT(FixedMap(Of(Pattern::kTornado), Spec(1, 1, 8)), ElementsAre(3, 4, 5, 6, 7, 0, 1, 2));
  EXPECT_THAT(FixedMap(Of(Pattern::kTornado), Spec(1, 1, 2)), ElementsAre(1, 0));
  const std::vector<NodeId> map = FixedMap(Of(Pattern::kTornado), Spec(5, 2, 2));
  for (NodeId n = 0; n < 20; ++n) EXPECT_EQ(map[n], (n + 2 * 4) % 20);
}

TEST(Patterns, TransposeSwapsRowsAndColumnsAndTheDiagonalIsSilent) {
  EXPECT_THAT(FixedMap(Of(Pattern::kTranspose), Spec(1, 1, 4)),
              ElementsAre(kNoNode, 2, 1, kNoNode));
  const std::vector<NodeId> map = FixedMap(Of(Pattern::kTranspose), Spec(1, 2, 8));
  EXPECT_EQ(map[7], 13u);  // row 1, column 3 to row 3, column 1
  EXPECT_THAT(ErrorOf(Of(Pattern::kTranspose), Spec(1, 4, 8)),
              AllOf(HasSubstr("square number of hubs"), HasSubstr("= 32 hubs"),
                    HasSubstr("16 (1 x 2 x 8)")));
}

TEST(Patterns, BitcompInvertsEveryBit) {
  EXPECT_THAT(FixedMap(Of(Pattern::kBitcomp), Spec(1, 1, 8)), ElementsAre(7, 6, 5, 4, 3, 2, 1, 0));
  EXPECT_THAT(ErrorOf(Of(Pattern::kBitcomp), Spec(3, 1, 4)),
              AllOf(HasSubstr("power of two"), HasSubstr("= 12 hubs"), HasSubstr("8 or 16")));
}

TEST(Patterns, RandpermIsAPermutationWithoutFixedPointsThatTheSeedDecides) {
  for (const TopologySpec& t :
       {Spec(1, 1, 2), Spec(1, 1, 3), Spec(1, 4, 8), Spec(5, 3, 7), Spec(513, 4, 8)}) {
    const std::vector<NodeId> map = FixedMap(Of(Pattern::kRandperm), t, 7);
    EXPECT_EQ(std::set<NodeId>(map.begin(), map.end()).size(), NodesOf(t));
    EXPECT_LT(*std::max_element(map.begin(), map.end()), NodesOf(t));
  }
  const TopologySpec t = Spec(1, 4, 8);
  EXPECT_EQ(FixedMap(Of(Pattern::kRandperm), t, 7), FixedMap(Of(Pattern::kRandperm), t, 7));
  EXPECT_NE(FixedMap(Of(Pattern::kRandperm), t, 7), FixedMap(Of(Pattern::kRandperm), t, 8));
}

TEST(Patterns, RandpermReachesEveryDestinationOverSeeds) {
  std::vector<int> counts(8);
  for (std::uint64_t seed = 0; seed < 7'000; ++seed) {
    auto p = DestinationPattern::Create(Of(Pattern::kRandperm), Spec(1, 1, 8), seed, 3);
    RandomStream unused;
    ++counts.at(p->Draw(unused));
  }
  EXPECT_EQ(counts[3], 0);
  for (NodeId n : {0, 1, 2, 4, 5, 6, 7}) EXPECT_NEAR(counts[n], 1'000, 180);
}

TEST(Patterns, SupernodePairSendsHubToHubAndOthersAreSilent) {
  PatternWorkload w = Of(Pattern::kSupernodePair);
  w.source_supernode = 2;
  w.destination_supernode = 0;
  EXPECT_THAT(FixedMap(w, Spec(3, 1, 2)), ElementsAre(kNoNode, kNoNode, kNoNode, kNoNode, 0, 1));
}

TEST(Patterns, BitrevReversesTheBitsAndItsOwnReverseIsSilent) {
  EXPECT_THAT(FixedMap(Of(Pattern::kBitrev), Spec(1, 1, 8)),
              ElementsAre(kNoNode, 4, kNoNode, 6, 1, kNoNode, 3, kNoNode));
  EXPECT_THAT(ErrorOf(Of(Pattern::kBitrev), Spec(3, 1, 4)),
              AllOf(HasSubstr("pattern bitrev"), HasSubstr("power of two")));
}

TEST(Patterns, ShuffleRotatesTheBitsLeft) {
  EXPECT_THAT(FixedMap(Of(Pattern::kShuffle), Spec(1, 1, 8)),
              ElementsAre(kNoNode, 2, 4, 6, 1, 3, 5, kNoNode));
  EXPECT_THAT(FixedMap(Of(Pattern::kShuffle), Spec(1, 1, 2)), ElementsAre(kNoNode, kNoNode));
}

TEST(Patterns, AdversarialReachesEveryHubOfOneSupernodeAlike) {
  PERCS_TRACE_SEED();
  PatternWorkload w = Of(Pattern::kAdversarial);
  w.supernode_offset = 2;
  const std::vector<int> counts = DestinationCounts(w, Spec(3, 1, 4), 5, 40'000);
  for (NodeId n = 0; n < 4; ++n) EXPECT_NEAR(counts[n], 10'000, 600);  // (1 + 2) mod 3 = 0
  for (NodeId n = 4; n < 12; ++n) EXPECT_EQ(counts[n], 0);
}

TEST(Patterns, AdversarialTrafficCanBeMixedWithUniform) {
  PERCS_TRACE_SEED();
  PatternWorkload w = Of(Pattern::kAdversarial);
  w.uniform_fraction = 0.5;
  const std::vector<int> counts = DestinationCounts(w, Spec(2, 1, 4), 0, 56'000);
  EXPECT_EQ(counts[0], 0);
  EXPECT_NEAR(counts[1], 4'000, 500);   // a seventh of the half
  EXPECT_NEAR(counts[7], 11'000, 700);  // and a quarter of the other
  w.uniform_fraction = 1;
  EXPECT_NEAR(DestinationCounts(w, Spec(2, 1, 4), 0, 56'000)[1], 8'000, 600);
}

TEST(Patterns, StencilSendsToTheNeighboursInATorusInTurn) {
  const auto in_turn = [](const TopologySpec& t, NodeId node, int draws) {
    auto p = DestinationPattern::Create(Of(Pattern::kStencil), t, 1, node);
    EXPECT_TRUE(p.ok()) << p.status();
    RandomStream unused;
    std::vector<NodeId> to;
    for (int i = 0; i < draws; ++i) to.push_back(p->Draw(unused));
    return to;
  };
  // 32 hubs are 4 x 8; hub 8 is the first of row 1.
  EXPECT_THAT(in_turn(Spec(1, 4, 8), 8, 5), ElementsAre(9, 15, 16, 0, 9));
  EXPECT_THAT(in_turn(Spec(1, 1, 7), 0, 3), ElementsAre(1, 6, 1));  // a ring
  EXPECT_THAT(in_turn(Spec(1, 1, 4), 0, 3), ElementsAre(1, 2, 1));  // 2 x 2
  EXPECT_THAT(in_turn(Spec(1, 1, 2), 1, 2), ElementsAre(0, 0));
}

TEST(Patterns, DiagonalIsThisHubOrTheNextAndAsymmetricOneOfTwoHalfTheHubsApart) {
  const std::vector<int> diagonal =
      DestinationCounts(Of(Pattern::kDiagonal), Spec(1, 2, 4), 7, 3'000);
  EXPECT_NEAR(diagonal[0], 1'000, 150);
  EXPECT_EQ(diagonal[0] + diagonal[7], 3'000);
  const std::vector<int> asymmetric =
      DestinationCounts(Of(Pattern::kAsymmetric), Spec(1, 2, 4), 6, 3'000);
  EXPECT_NEAR(asymmetric[2], 1'500, 150);
  EXPECT_EQ(asymmetric[2] + asymmetric[6], 3'000);
  EXPECT_THAT(ErrorOf(Of(Pattern::kAsymmetric), Spec(1, 1, 7)),
              AllOf(HasSubstr("an even number"), HasSubstr("expected 6 or 8")));
}

TEST(Patterns, APermutationIsItsListAndOthersAreSilent) {
  PatternWorkload w = Of(Pattern::kPermutation);
  w.permutation = {2, kNoNode, 0};
  EXPECT_EQ(FixedMap(w, Spec(1, 1, 3)), w.permutation);
  EXPECT_THAT(ErrorOf(w, Spec(1, 1, 4)), HasSubstr("a list for 3 places"));
}

TEST(Patterns, EndpointsAreThePlacesOfAPattern) {
  TopologySpec t = Spec(3, 1, 2);
  t.endpoints = 2;
  ASSERT_EQ(PlacesOf(t), 12u);
  const auto to = [&t](Pattern pattern, NodeId place) {
    auto p = DestinationPattern::Create(Of(pattern), t, 1, place);
    EXPECT_TRUE(p.ok()) << p.status();
    return p->fixed();
  };
  EXPECT_EQ(to(Pattern::kNeighbor, 3), 4u);
  EXPECT_EQ(to(Pattern::kNeighbor, 11), 0u);
  EXPECT_EQ(to(Pattern::kTornado, 1), 5u);  // the same endpoint, one supernode of 4 on
  EXPECT_EQ(to(Pattern::kSupernodePair, 2), 6u);
  EXPECT_EQ(to(Pattern::kSupernodePair, 4), kNoNode);
  RandomStream random(1, "test");
  auto adversarial = DestinationPattern::Create(Of(Pattern::kAdversarial), t, 1, 5);
  std::set<NodeId> reached;
  for (int i = 0; i < 200; ++i) reached.insert(adversarial->Draw(random));
  EXPECT_EQ(reached, (std::set<NodeId>{8, 9, 10, 11}));
  EXPECT_THAT(ErrorOf(Of(Pattern::kTranspose), t),
              HasSubstr("3 supernodes x 1 drawer x 2 hubs x 2 endpoints = 12 endpoints"));
  EXPECT_THAT(ErrorOf(Of(Pattern::kMulticast), t), HasSubstr("multicast group"));
}

TEST(Patterns, ImpossibleParametersSayWhatWouldBeRight) {
  PatternWorkload a = Of(Pattern::kAdversarial);
  EXPECT_THAT(ErrorOf(a, Spec(1, 4, 8)), HasSubstr("at least 2 supernodes"));
  a.supernode_offset = 3;
  EXPECT_THAT(ErrorOf(a, Spec(3, 1, 2)),
              AllOf(HasSubstr("supernode_offset 3"), HasSubstr("expected 1 to 2")));

  PatternWorkload w = Of(Pattern::kSupernodePair);
  EXPECT_THAT(ErrorOf(w, Spec(1, 4, 8)), HasSubstr("at least 2 supernodes"));
  w.destination_supernode = 3;
  EXPECT_THAT(ErrorOf(w, Spec(3, 1, 2)),
              AllOf(HasSubstr("destination_supernode 3 does not exist"), HasSubstr("0 to 2")));
  w.source_supernode = w.destination_supernode = 1;
  EXPECT_THAT(ErrorOf(w, Spec(3, 1, 2)), HasSubstr("two different ones"));
  PatternWorkload h = Of(Pattern::kHotspot);
  h.hotspot = 32;
  EXPECT_THAT(ErrorOf(h, Spec(1, 4, 8)), AllOf(HasSubstr("hotspot 32"), HasSubstr("0 to 31")));
  h.hotspot = 0;
  h.hotspot_fraction = 1.5;
  EXPECT_THAT(ErrorOf(h, Spec(1, 4, 8)), HasSubstr("from 0 to 1"));
  EXPECT_THAT(ErrorOf(Of(Pattern::kUniform), Spec(1, 1, 1)), HasSubstr("at least 2 hubs"));
}

// Two hubs and one LL link of 24 GB/s between them.
RunResult Neighbours(double load, Time stop_at = 0, Time warm_up = 10 * kMicrosecond) {
  Scenario scenario;
  scenario.topology = {.supernodes = 1, .drawers = 1, .hubs = 2};
  scenario.stop_at = stop_at;
  PatternWorkload pattern;
  pattern.load = load;
  pattern.warm_up = warm_up;
  pattern.measure = 20 * kMicrosecond;
  scenario.workload = pattern;
  return test::Play(scenario);
}

TEST(MeasurementTest, ARunIsSaturatedIfItAcceptsLessThanItOffers) {
  const RunResult idle = Neighbours(0.05), busy = Neighbours(0.9);
  EXPECT_FALSE(idle.measurement.saturated);
  EXPECT_TRUE(busy.measurement.saturated);
  EXPECT_EQ(busy.measurement.duration, 20 * kMicrosecond);
  EXPECT_EQ(busy.measurement.senders, 2u);
}

RunResult Drained(Time drain) {
  Scenario scenario;
  scenario.topology = {.supernodes = 1, .drawers = 1, .hubs = 2};
  PatternWorkload pattern;
  pattern.load = 0.05;
  pattern.message_bytes = 5000;  // three packets
  pattern.warm_up = 10 * kMicrosecond;
  pattern.measure = 20 * kMicrosecond;
  pattern.drain = drain;
  if (drain > 0) scenario.stop_at = 30 * kMicrosecond + drain;
  scenario.workload = pattern;
  return test::Play(scenario);
}

TEST(MeasurementTest, HubsGoOnSendingUntilTheMeasurementIsDrained) {
  const RunResult alone = Drained(0), drained = Drained(20 * kMicrosecond);
  EXPECT_GT(drained.total.packets_created, alone.total.packets_created);
  EXPECT_EQ(drained.total.measured_bytes_offered, alone.total.measured_bytes_offered);
  EXPECT_EQ(alone.measurement.created, 0u) << "nothing is known without a drain";
  EXPECT_EQ(drained.measurement.created, drained.total.measured_bytes_offered / 5000 * 3);
  EXPECT_EQ(drained.measurement.created, drained.total.packet_latency.count);
  EXPECT_EQ(drained.measurement.undelivered, 0u);
  EXPECT_FALSE(drained.measurement.saturated);
}

TEST(MeasurementTest, WhatHasNotArrivedAtTheEndOfTheDrainMakesTheRunSaturated) {
  const RunResult cut = Drained(1);
  EXPECT_GT(cut.measurement.undelivered, 0u);
  EXPECT_EQ(cut.measurement.undelivered, cut.measurement.created - cut.total.packet_latency.count);
  EXPECT_TRUE(cut.measurement.saturated);
}

TEST(MeasurementTest, ADrainIsOfRawPacketsAndOfAMeasurement) {
  const auto error = [](auto&& change) {
    Scenario scenario;
    scenario.topology = {.supernodes = 1, .drawers = 1, .hubs = 2};
    PatternWorkload pattern;
    pattern.measure = pattern.drain = kMicrosecond;
    scenario.stop_at = 2 * kMicrosecond;
    change(pattern);
    scenario.workload = pattern;
    return std::string(RunScenario(scenario, {}).status().message());
  };
  EXPECT_EQ(error([](PatternWorkload&) {}), "");
  EXPECT_THAT(error([](PatternWorkload& w) { w.measure = 0; }), HasSubstr("write for example"));
  EXPECT_THAT(error([](PatternWorkload& w) { w.reliable = true; }), HasSubstr("raw packets"));
}

TEST(MeasurementTest, AnIdleNetworkIsSteadyAndFairAndItsMeanIsKnown) {
  const Measurement m = Neighbours(0.05).measurement;
  EXPECT_TRUE(m.latency.steady);
  EXPECT_GE(m.latency.half_width_ps, 0);
  EXPECT_EQ(m.receivers, 2u);
  EXPECT_GT(m.least_accepted_bytes, 0u);
  EXPECT_GT(m.fairness, 0.9);
}

TEST(MeasurementTest, QueuesThatGrowAreNotSteady) {
  EXPECT_FALSE(Neighbours(0.9).measurement.latency.steady);
}

// One supernode of 2 x 4 hubs at a load; the whole run is measured.
Scenario WithoutWarmUp(double load) {
  Scenario scenario;
  scenario.topology = {.supernodes = 1, .drawers = 2, .hubs = 4};
  PatternWorkload pattern;
  pattern.load = load;
  pattern.measure = 120 * kMicrosecond;
  pattern.auto_warm_up = true;
  scenario.workload = pattern;
  return scenario;
}

TEST(MeasurementTest, TheWarmUpIsFoundAndLeftOutAndTheDigestIsOfTheWholeRun) {
  Scenario scenario = WithoutWarmUp(0.22);
  const RunResult found = test::Play(scenario);
  std::get<PatternWorkload>(scenario.workload).auto_warm_up = false;
  const RunResult whole = test::Play(scenario);
  EXPECT_EQ(found.digest, whole.digest);
  const Measurement& m = found.measurement;
  EXPECT_FALSE(m.unstable);
  EXPECT_EQ(m.warm_up % (20 * kMicrosecond), 0);
  EXPECT_LE(m.warm_up, 60 * kMicrosecond);
  EXPECT_EQ(m.duration, 120 * kMicrosecond - m.warm_up);
  const double kept = static_cast<double>(m.duration) / (120 * kMicrosecond);
  EXPECT_NEAR(static_cast<double>(found.total.packet_latency.count),
              kept * static_cast<double>(whole.total.packet_latency.count),
              0.05 * static_cast<double>(whole.total.packet_latency.count));
  EXPECT_EQ(whole.measurement.warm_up, 0);
}

TEST(MeasurementTest, ANetworkThatIsNeverSteadyIsUnstableAndHasNoLatency) {
  const Measurement m = test::Play(WithoutWarmUp(1)).measurement;
  EXPECT_TRUE(m.unstable);
  EXPECT_FALSE(m.has_latency());
}

TEST(MeasurementTest, EveryPlacementFindsTheSameWarmUpPathsAndShares) {
  const Scenario scenario = WithoutWarmUp(0.2);
  const RunResult one = test::Play(scenario);
  test::SplitOptions split;
  split.processes = 3;
  const auto many = test::SplitRun(scenario, split);
  ASSERT_TRUE(many.ok()) << many.status();
  EXPECT_EQ(many->measurement.warm_up, one.measurement.warm_up);
  EXPECT_EQ(many->measurement.paths, one.measurement.paths);
  EXPECT_EQ(many->measurement.source_fairness, one.measurement.source_fairness);
  EXPECT_EQ(many->total.packet_latency.buckets, one.total.packet_latency.buckets);
}

TEST(MeasurementTest, LatenciesByPathAreThoseOfAllPackets) {
  Scenario scenario;
  scenario.topology = {.supernodes = 3, .drawers = 2, .hubs = 2};
  PatternWorkload pattern;
  pattern.load = 0.02;
  pattern.measure = 50 * kMicrosecond;
  scenario.workload = pattern;
  const auto paths = [&scenario](RouteMode mode) {
    scenario.routing.fifo.mode = mode;
    const RunResult result = test::Play(scenario);
    std::uint64_t packets = 0, sum = 0;
    for (const auto& row : result.measurement.paths.cells) {
      for (const auto& cell : row) packets += cell.count, sum += cell.sum_ps;
    }
    EXPECT_EQ(packets, result.total.packet_latency.count);
    EXPECT_EQ(sum, result.total.packet_latency.sum);
    return result.measurement.paths.cells;
  };
  const auto direct = paths(RouteMode::kHwDirect), indirect = paths(RouteMode::kHwIndirect);
  for (const auto* cells : {&direct, &indirect}) {
    EXPECT_GT((*cells)[PathLatencies::kDrawer][1].count, 0u);
    EXPECT_GT((*cells)[PathLatencies::kSupernode][1].count, 0u);
    EXPECT_EQ((*cells)[PathLatencies::kEdge], (decltype(direct[0]){}));
  }
  EXPECT_GT(direct[PathLatencies::kDirect][1].count, 0u);
  EXPECT_GT(direct[PathLatencies::kDirect][3].count, 0u);
  EXPECT_EQ(direct[PathLatencies::kDirect][4].count, 0u);
  EXPECT_EQ(indirect[PathLatencies::kDirect], (decltype(direct[0]){}));
  EXPECT_GT(indirect[PathLatencies::kIndirect][4].count, 0u);
}

TEST(MeasurementTest, ASourceThatGetsLessIntoTheNetworkIsUnfair) {
  // Hub 1 has the link to hub 0 for itself; hubs of the other drawer share an LR link each, which
  // is slower.
  Scenario scenario;
  scenario.topology = {.supernodes = 1, .drawers = 2, .hubs = 2};
  PatternWorkload pattern;
  pattern.pattern = Pattern::kHotspot;
  pattern.hotspot_fraction = 1;
  pattern.load = 0.2;
  pattern.measure = 100 * kMicrosecond;
  scenario.workload = pattern;
  const Measurement m = test::Play(scenario).measurement;
  EXPECT_LT(m.source_fairness, 0.9);
  EXPECT_GT(m.least_injected_bytes, 400'000u);  // 5 GB/s x 100 us, less what buffers hold
  EXPECT_LT(m.least_injected_bytes, 520'000u);
}

TEST(MeasurementTest, WhatHubsOfAHotspotAcceptIsUnfair) {
  Scenario scenario;
  scenario.topology = {.supernodes = 1, .drawers = 1, .hubs = 8};
  PatternWorkload pattern;
  pattern.pattern = Pattern::kHotspot;
  pattern.hotspot_fraction = 1;
  pattern.load = 0.01;
  pattern.measure = 50 * kMicrosecond;
  scenario.workload = pattern;
  const Measurement m = test::Play(scenario).measurement;
  EXPECT_EQ(m.receivers, 8u);
  EXPECT_LT(m.fairness, 0.9);
}

TEST(MeasurementTest, ReceiversAreTheHubsThatSomeHubSendsTo) {
  Scenario scenario;
  scenario.topology = {.supernodes = 2, .drawers = 1, .hubs = 4};
  PatternWorkload pattern;
  pattern.pattern = Pattern::kSupernodePair;
  pattern.load = 0.02;
  pattern.measure = 50 * kMicrosecond;
  scenario.workload = pattern;
  EXPECT_EQ(test::Play(scenario).measurement.receivers, 4u);
}

TEST(MeasurementTest, ItsLengthIsThatOfThePartBeforeTheRunStops) {
  EXPECT_EQ(Neighbours(0.05, 15 * kMicrosecond).measurement.duration, 5 * kMicrosecond);
  EXPECT_EQ(Neighbours(0.05, 5 * kMicrosecond).measurement.duration, 0);
}

}  // namespace
}  // namespace percs
