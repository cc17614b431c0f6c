// Every kind of fault in a run: what it does to packets, and that it does so no longer when it is
// over.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "emulator/scenario/link_settings.h"
#include "emulator/sim/run.h"
#include "tests/support/fault_runs.h"

namespace percs {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr Time kFrom = 20 * kUs, kFor = 40 * kUs;  // of every fault here
constexpr int kPackets = 200;                      // one per microsecond

// Hub 0 sends to hub 1 every microsecond; two drawers of two hubs.
Scenario Steady(FaultSpec fault) {
  Scenario s;
  s.topology = {1, 2, 2, 1};
  ScriptedWorkload script;
  for (int i = 0; i < kPackets; ++i) script.packets.push_back({i * kUs, 0, 1});
  s.workload = script;
  s.reroute = false;
  fault.id = "fault";
  if (!fault.at) fault.at = kFrom + 1;
  fault.duration = kFor;
  s.faults = {fault};
  return s;
}

FaultSpec OnLink(FaultKind kind) {
  FaultSpec fault;
  fault.kind = kind;
  fault.select.link = LinkEnd{0, 0};
  return fault;
}

RunResult ResultOf(const Scenario& scenario) {
  auto result = RunScenario(scenario, {});
  EXPECT_TRUE(result.ok()) << result.status();
  if (!result.ok()) return {};
  EXPECT_THAT(result->violations, IsEmpty());
  for (const FaultStatus& fault : result->faults) {
    EXPECT_GE(fault.injections, 1u);
    EXPECT_EQ(fault.injections, fault.recoveries);
    EXPECT_EQ(fault.phase, FaultPhase::kRecovered);
  }
  return *std::move(result);
}

TEST(FaultEffects, LinkDownLosesItsPacketsWhileItLasts) {
  const RunResult result = ResultOf(Steady(OnLink(FaultKind::kLinkDown)));
  EXPECT_EQ(Dropped(result, DropReason::kLinkDown), 40u);
  EXPECT_EQ(result.total.packets_delivered, kPackets - 40u);
  EXPECT_EQ(result.total.alerts_raised, 4u) << "both ends, down and up";
}

TEST(FaultEffects, TwoFaultsHoldALinkUntilBothAreOver) {
  Scenario s = Steady(OnLink(FaultKind::kLinkDown));
  FaultSpec second = OnLink(FaultKind::kLinkDown);
  second.id = "second";
  second.select.link = LinkEnd{1, 0};  // the same link by its other end
  second.at = 40 * kUs + 1;
  second.duration = 60 * kUs;
  s.faults.push_back(second);
  const RunResult result = ResultOf(s);
  EXPECT_EQ(Dropped(result, DropReason::kLinkDown), 80u);
  EXPECT_EQ(result.total.alerts_raised, 4u);
}

TEST(FaultEffects, ACommandedDownLinkStaysDownWhenAFaultOnItIsOver) {
  Scenario s = Steady(OnLink(FaultKind::kLinkDown));
  s.faults.insert(s.faults.end(),
                  {SetLinkDown(30 * kUs + 1, {0, 0}), SetLinkUp(100 * kUs + 1, {0, 0})});
  EXPECT_EQ(Dropped(ResultOf(s), DropReason::kLinkDown), 80u);
}

TEST(FaultEffects, ADarkPortIsGivenUpByReplayAndRetrainedAfterwards) {
  FaultSpec fault = OnLink(FaultKind::kPortDown);
  fault.direction = FaultDirection::kForward;
  const RunResult dark = ResultOf(Steady(fault));
  EXPECT_NEAR(static_cast<double>(Dropped(dark, DropReason::kLinkDown)), 40, 3);
  EXPECT_EQ(dark.total.packets_delivered + Dropped(dark, DropReason::kLinkDown),
            static_cast<std::uint64_t>(kPackets));
  EXPECT_EQ(dark.total.ports[0].replays, 16u) << "replay_limit, once";
  EXPECT_EQ(dark.total.alerts_raised, 4u);
  // Nothing is sent the other way, so nobody notices.
  fault.direction = FaultDirection::kBackward;
  const RunResult unused = ResultOf(Steady(fault));
  EXPECT_EQ(unused.total.packets_delivered, static_cast<std::uint64_t>(kPackets));
  EXPECT_EQ(unused.total.alerts_raised, 0u);
}

TEST(FaultEffects, AFlapLosesTheShareOfItsDutyCycle) {
  FaultSpec fault = OnLink(FaultKind::kFlap);
  fault.period = 10 * kUs;
  fault.duty = 0.3;
  const RunResult result = ResultOf(Steady(fault));
  EXPECT_EQ(result.faults[0].injections, 4u);
  EXPECT_EQ(Dropped(result, DropReason::kLinkDown), 12u);
  EXPECT_EQ(result.total.alerts_raised, 16u);
}

TEST(FaultEffects, LaneLossSlowsALinkDownAndTwoOfThemAddUp) {
  FaultSpec fault = OnLink(FaultKind::kLaneLoss);
  fault.lanes = 32;
  Scenario s = Steady(fault);
  const auto latency = [](const RunResult& result) { return result.total.packet_latency.max; };
  Scenario clean = s;
  clean.faults.clear();
  const RunResult slow = ResultOf(s);
  EXPECT_EQ(slow.total.packets_delivered, static_cast<std::uint64_t>(kPackets));
  // 16 flits at half the rate: as many flit times more.
  EXPECT_NEAR(static_cast<double>(latency(slow)),
              static_cast<double>(latency(ResultOf(clean))) + 16 * 5334, 2 * 5334);
  EXPECT_EQ(slow.total.ports[0].lanes_lost, 0u) << "repaired";
  FaultSpec more = s.faults[0];
  more.id = "more";
  more.lanes = 1;  // 33 of 64: too few are left
  s.faults.push_back(more);
  EXPECT_EQ(Dropped(ResultOf(s), DropReason::kLinkDown), 40u);
}

TEST(FaultEffects, BitErrorsAreReplayed) {
  FaultSpec fault = OnLink(FaultKind::kBitErrors);
  fault.flit_error_rate = 0.1;
  fault.direction = FaultDirection::kForward;
  const RunResult result = ResultOf(Steady(fault));
  EXPECT_EQ(result.total.packets_delivered, static_cast<std::uint64_t>(kPackets));
  EXPECT_NEAR(static_cast<double>(result.total.ports[0].crc_errors), 40 * 16 * 0.1 / 0.9, 40);
}

TEST(FaultEffects, CorruptNextCorruptsSoManyAndNoMoreWhenItIsOver) {
  FaultSpec fault = OnLink(FaultKind::kCorruptNext);
  fault.corrupt = 7;
  EXPECT_EQ(ResultOf(Steady(fault)).total.ports[0].crc_errors, 7u);
  // 100 at once would give the link up; what is left is called off with the fault.
  fault.corrupt = 100;
  const RunResult result = ResultOf(Steady(fault));
  EXPECT_EQ(result.total.ports[0].crc_errors, 16u);
  EXPECT_EQ(Dropped(result, DropReason::kLinkDown), 40u);
}

TEST(FaultEffects, AHubThatIsDownIsCutOffFromEverybody) {
  FaultSpec fault;
  fault.kind = FaultKind::kHubDown;
  fault.select.in = {1};
  Scenario s = Steady(fault);
  auto& packets = std::get<ScriptedWorkload>(s.workload).packets;
  for (int i = 0; i < kPackets; ++i) packets.push_back({i * kUs, 2, 3});
  for (int i = 0; i < kPackets; ++i) packets.push_back({i * kUs, 1, 3});
  const RunResult result = ResultOf(s);
  EXPECT_EQ(Dropped(result, DropReason::kLinkDown), 80u) << "to it and from it";
  EXPECT_EQ(result.total.packets_delivered, 3u * kPackets - 80);
}

TEST(FaultEffects, APartitionCutsOnlyWhatCrossesIt) {
  FaultSpec fault;
  fault.kind = FaultKind::kPartition;
  fault.select.in = {0, 1};
  Scenario s = Steady(fault);
  auto& packets = std::get<ScriptedWorkload>(s.workload).packets;
  for (int i = 0; i < kPackets; ++i) packets.push_back({i * kUs, 1, 2});
  const RunResult result = ResultOf(s);
  EXPECT_EQ(result.faults[0].targets.links.size(), 4u);
  EXPECT_EQ(Dropped(result, DropReason::kLinkDown), 40u);
}

TEST(FaultEffects, ADamagedTableEntryIsRepairedByTheEndOfTheFaultIfNobodyElseDoes) {
  FaultSpec fault;
  fault.kind = FaultKind::kTableDamage;
  fault.select.in = {0};
  fault.destination = 1;
  const RunResult result = ResultOf(Steady(fault));
  EXPECT_EQ(Dropped(result, DropReason::kTableParity), 40u);
}

TEST(FaultEffects, WithoutItsAlertADeadLinkIsNotReroutedUntilTheAlertComesThrough) {
  Scenario s = Steady(OnLink(FaultKind::kLinkDown));
  s.reroute = true;
  s.faults[0].duration = 100 * kUs;
  const RunResult heard = ResultOf(s);
  const std::uint64_t before_reroute = Dropped(heard, DropReason::kLinkDown);
  EXPECT_EQ(before_reroute, 27u)
      << "from the one on its way to detect + plan + install of 26us later";
  FaultSpec mute = OnLink(FaultKind::kAlertSuppressed);
  mute.id = "mute";
  mute.at = 10 * kUs;
  mute.duration = 60 * kUs;
  s.faults.push_back(mute);
  const RunResult muted = ResultOf(s);
  EXPECT_EQ(Dropped(muted, DropReason::kLinkDown), 50u + 26u) << "until 70us, and then the reroute";
  ASSERT_EQ(muted.reroutes.size(), 2u);
  EXPECT_EQ(muted.reroutes[0].raised, 70 * kUs);
  EXPECT_EQ(muted.total.alerts_raised, 4u);
}

TEST(FaultEffects, AllDLinksOfAPairCutSendsPacketsOverAnotherSupernode) {
  Scenario s;
  s.topology = {3, 1, 2, 1};
  ScriptedWorkload script;
  for (int i = 0; i < kPackets; ++i) script.packets.push_back({i * kUs, 0, 2});
  s.workload = script;
  FaultSpec cut;
  cut.id = "cut";
  cut.at = kFrom + 1;
  cut.select.link_class = LinkClass::kD;
  cut.select.in = {0, 1};
  cut.select.to = {2, 3};
  s.faults = {cut};
  const auto result = RunScenario(s, {});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(result->violations, IsEmpty());
  ASSERT_EQ(result->faults[0].targets.links.size(), 1u);
  ASSERT_EQ(result->reroutes.size(), 1u);
  EXPECT_EQ(result->reroutes[0].unreachable_pairs, 0u);
  EXPECT_EQ(Dropped(*result, DropReason::kLinkDown), 27u);
  EXPECT_EQ(result->total.packets_delivered, kPackets - 27u);
}

TEST(FaultEffects, TheLastLinkOfAHubCutLeavesItUnreachableAndTheOthersAlone) {
  Scenario s;
  s.topology = {1, 1, 3, 1};
  ScriptedWorkload script;
  for (int i = 0; i < kPackets; ++i) {
    script.packets.push_back({i * kUs, 0, 2});
    script.packets.push_back({i * kUs, 0, 1});
  }
  s.workload = script;
  FaultSpec cut;
  cut.id = "cut";
  cut.kind = FaultKind::kHubDown;
  cut.select.in = {2};
  cut.at = kFrom + 1;
  cut.duration = 100 * kUs;
  s.faults = {cut};
  const RunResult result = ResultOf(s);
  ASSERT_EQ(result.reroutes.size(), 2u);
  EXPECT_EQ(result.reroutes[0].unreachable_pairs, 4u);
  EXPECT_EQ(result.reroutes[1].unreachable_pairs, 0u);
  EXPECT_EQ(Dropped(result, DropReason::kLinkDown) + Dropped(result, DropReason::kNoRoute), 127u)
      << "until it is back and the tables know";
  EXPECT_EQ(result.total.packets_delivered, 2u * kPackets - 127);
}

}  // namespace
}  // namespace percs
