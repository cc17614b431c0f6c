// What is left of a fault when it is over: nothing, once arbiters are reset; and what is told of it
// afterwards.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "emulator/management/fault_timeline.h"
#include "emulator/sim/run.h"
#include "tests/support/fault_runs.h"
#include "tests/support/split_run.h"

namespace percs {
namespace {

using testing::IsEmpty;
using testing::SizeIs;
using Again = RunOptions::Again;

// Three supernodes of two drawers of two hubs, two cables between every two supernodes.
Scenario Base(bool reliable, std::uint64_t packets = 32) {
  Scenario s;
  s.topology = {.supernodes = 3,
                .drawers = 2,
                .hubs = 2,
                .d_links_per_pair = 2,
                .clock = ClockSettings(),
                .pcie = {{.hub = 5}, {.hub = 7}}};
  s.workload = AllToAllWorkload{packets * 2048, Schedule::kSpread, reliable, PayloadMode::kLengths};
  s.service.probe_rounds = 4;
  s.service.probe_period = 30 * kUs;
  return s;
}

FaultSpec OfKind(FaultKind kind) {
  FaultSpec fault;
  fault.id = "fault";
  fault.kind = kind;
  fault.at = 3 * kUs;
  fault.duration = 60 * kUs;
  fault.mode = FaultMode::kFixed;
  fault.count = 2;
  if (kind == FaultKind::kFlap) fault.period = 10 * kUs;
  if (kind == FaultKind::kPortDown) fault.direction = FaultDirection::kForward;
  if (kind == FaultKind::kLaneLoss) fault.lanes = 3;
  if (kind == FaultKind::kBitErrors) fault.flit_error_rate = 0.05;
  if (kind == FaultKind::kCorruptNext) fault.corrupt = 5;
  if (kind == FaultKind::kTableDamage) fault.destination = 1;
  if (kind == FaultKind::kLatency) fault.latency = 2 * kUs;
  if (kind == FaultKind::kHfiDown) fault.hfi = 0;
  if (kind == FaultKind::kWindowDown) fault.window = 1;
  if (kind == FaultKind::kPcieUnplugged) fault.pcie_port = 0;
  if (kind == FaultKind::kClockDrift) fault.drift_ppb = 1'000'000;
  if (kind == FaultKind::kPartition) {
    fault.mode = FaultMode::kAll;
    fault.select.in = {0, 1, 2, 3};
  }
  return fault;
}

struct Second {
  RunResult result;
  std::vector<std::uint64_t> link_flits;
  Time duration = 0;
};

Second RunTwice(const Scenario& scenario, Again again) {
  Second second;
  RunOptions options;
  options.again = again;
  options.on_result = [&second](const NodeResult& node) {
    second.link_flits.insert(second.link_flits.end(), node.link_flits.begin(),
                             node.link_flits.end());
  };
  auto result = RunScenario(scenario, options);
  EXPECT_TRUE(result.ok()) << result.status();
  if (!result.ok()) return second;
  EXPECT_THAT(result->violations, IsEmpty());
  second.result = *std::move(result);
  second.duration = second.result.virtual_time - second.result.workload_started;
  return second;
}

class Healed : public testing::TestWithParam<int> {};

TEST_P(Healed, TheWorkloadOnceMoreIsThatOfAFreshFabricWhenArbitersAreReset) {
  const auto kind = static_cast<FaultKind>(GetParam());
  for (const bool reliable : {true, false}) {
    Scenario fresh = Base(reliable);
    fresh.service = {};  // so that its first time is the workload alone
    Scenario broken = Base(reliable);
    broken.faults = {OfKind(kind)};
    const Second first = RunTwice(fresh, Again::kNo),
                 second = RunTwice(broken, Again::kWithArbitersReset);
    EXPECT_NE(first.result.digest, second.result.digest);
    EXPECT_GT(second.result.workload_started, 63 * kUs);
    EXPECT_EQ(first.result.workload, second.result.workload)
        << FaultKindName(kind) << (reliable ? ", messages" : "");
    EXPECT_EQ(first.link_flits, second.link_flits);
  }
}

TEST_P(Healed, WithoutTheResetLinkLoadsAreEqualAndTheDurationWithinAPercent) {
  const auto kind = static_cast<FaultKind>(GetParam());
  // 256 KiB per pair. Another order in which things end costs a microsecond or two: of 64 KiB up
  // to 1.1 %, of 128 KiB up to 1.4 %.
  Scenario fresh = Base(false, 128);
  fresh.service = {};
  Scenario broken = Base(false, 128);
  broken.faults = {OfKind(kind)};
  const Second first = RunTwice(fresh, Again::kNo), second = RunTwice(broken, Again::kAsItIs);
  EXPECT_EQ(first.link_flits, second.link_flits) << FaultKindName(kind);
  EXPECT_NEAR(static_cast<double>(second.duration), static_cast<double>(first.duration),
              static_cast<double>(first.duration) / 100)
      << FaultKindName(kind);
}

INSTANTIATE_TEST_SUITE_P(EveryKind, Healed, testing::Range(0, kFaultKinds), [](const auto& info) {
  return std::string(FaultKindName(static_cast<FaultKind>(info.param)));
});

TEST(FaultTimelines,
     ALinkThatDiesIsDetectedAlertedPlannedAndCommittedAndThenAPacketGoesAnotherWay) {
  Scenario s;
  s.topology = {1, 1, 4, 1};
  s.workload = AllToAllWorkload{1 << 20, Schedule::kSpread, true, PayloadMode::kVerified};
  FaultSpec cut;
  cut.id = "cut";
  cut.select.link = LinkEnd{0, 0};
  cut.at = 20 * kUs;
  s.faults = {cut};
  const auto result = RunScenario(s, {});
  ASSERT_TRUE(result.ok()) << result.status();
  const Topology topology = *Topology::Create(s.topology);
  const FaultTimeline timeline = TimelineOf(result->faults[0], result->reroutes, topology);
  const P7ihParameters& p = s.parameters;
  EXPECT_EQ(timeline.detected, 20 * kUs);
  EXPECT_EQ(timeline.alerted, 20 * kUs + p.management_latency);
  EXPECT_EQ(timeline.planned, 20 * kUs + p.detect + p.plan);
  EXPECT_EQ(timeline.committed, timeline.planned + p.install);
  EXPECT_GE(timeline.first_packet, timeline.committed);
  EXPECT_LT(timeline.first_packet, result->virtual_time);
  EXPECT_EQ(timeline.epoch, 2u);
  ASSERT_THAT(result->tallies, SizeIs(1));
  EXPECT_EQ(result->tallies[0].fault, result->faults[0].number);
  EXPECT_GT(result->tallies[0].losses.lost, 0u);
  EXPECT_GE(result->total.packets_resent, result->tallies[0].losses.resent);
  EXPECT_GT(result->tallies[0].losses.resent, 0u);
  test::SplitOptions split;
  split.processes = 3;
  const auto processes = test::SplitRun(s, split);
  ASSERT_TRUE(processes.ok()) << processes.status();
  ASSERT_THAT(processes->tallies, SizeIs(1));
  EXPECT_EQ(processes->tallies[0].losses, result->tallies[0].losses);
}

TEST(FaultTimelines, RawPacketsThatDieAreCountedOnceEachAndReplaysToo) {
  Scenario s;
  s.topology = {1, 2, 2, 1};
  ScriptedWorkload script;
  for (int i = 0; i < 200; ++i) script.packets.push_back({i * kUs / 2, 0, 1});
  s.workload = script;
  s.reroute = false;
  FaultSpec cut;
  cut.id = "cut";
  cut.select.link = LinkEnd{0, 0};
  cut.at = 20 * kUs + 1;
  cut.duration = 40 * kUs;
  FaultSpec noise;
  noise.id = "noise";
  noise.kind = FaultKind::kBitErrors;
  noise.flit_error_rate = 0.01;
  noise.select.link = LinkEnd{0, 0};
  noise.at = 70 * kUs;
  noise.duration = 20 * kUs;
  s.faults = {cut, noise};
  const auto result = RunScenario(s, {});
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_THAT(result->tallies, SizeIs(2));
  EXPECT_EQ(result->tallies[0].losses.lost,
            result->total.packets_dropped[static_cast<std::size_t>(DropReason::kLinkDown)] +
                result->total.packets_dropped[static_cast<std::size_t>(DropReason::kTruncated)]);
  EXPECT_EQ(result->tallies[0].losses.resent, 0u) << "raw";
  EXPECT_EQ(result->tallies[1].losses.replayed, result->total.ports[0].replays);
  EXPECT_GT(result->tallies[1].losses.replayed, 0u);
}

TEST(FaultTimelines, AnUnansweredFaultHasOnlyItsBeginning) {
  FaultStatus fault;
  fault.spec.select.link = LinkEnd{0, 0};
  fault.targets.links = {LinkEnd{0, 0}};
  fault.injected_at = 5;
  const Topology topology = *Topology::Create({1, 1, 2, 1});
  const FaultTimeline timeline = TimelineOf(fault, {}, topology);
  EXPECT_EQ(timeline.detected, kNever);
  EXPECT_EQ(timeline.epoch, 0u);
}

}  // namespace
}  // namespace percs
