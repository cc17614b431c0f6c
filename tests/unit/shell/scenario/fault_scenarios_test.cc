// The example scenarios about faults: what each is there to show has to happen, and the events have
// to tell of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "emulator/sim/run.h"
#include "tests/support/fault_runs.h"
#include "tests/unit/shell/scenario/example_result.h"

namespace percs {
namespace {

using test::ExampleResult;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

constexpr Time kUs = kMicrosecond;

std::vector<std::string> Kinds(const RunResult& result) {
  std::vector<std::string> kinds;
  for (const FabricEvent& event : result.events) {
    if (kinds.empty() || kinds.back() != event.kind) kinds.push_back(event.kind);
  }
  return kinds;
}

TEST(FaultScenarios, TwoSupernodesAreCutApartAndHeal) {
  const RunResult result = ExampleResult("partition");
  EXPECT_GT(Dropped(result, DropReason::kLinkDown), 0u);
  ASSERT_GE(result.reroutes.size(), 2u);
  EXPECT_TRUE(std::any_of(result.reroutes.begin(), result.reroutes.end(), [](const Reroute& r) {
    return r.unreachable_pairs == 2 * 4 * 4;
  })) << "every pair across the cut";
  EXPECT_EQ(result.reroutes.back().unreachable_pairs, 0u);
  EXPECT_EQ(result.total.messages_delivered, 8u * 7);
  EXPECT_EQ(result.total.messages_failed, 0u);
}

TEST(FaultScenarios, TheLastLinkOfAHubIsCutAndComesBack) {
  const RunResult result = ExampleResult("last-link");
  ASSERT_GE(result.reroutes.size(), 4u);
  EXPECT_EQ(result.reroutes[0].unreachable_pairs, 0u) << "there is another one";
  EXPECT_EQ(result.reroutes[1].unreachable_pairs, 4u) << "and then there is none";
  EXPECT_EQ(result.reroutes.back().unreachable_pairs, 0u);
  EXPECT_EQ(result.total.messages_delivered, 6u);
  EXPECT_GT(result.total.packets_resent, 0u);
  EXPECT_THAT(Kinds(result),
              ElementsAre("fault_selected", "fault_injected", "alert", "reroute", "fault_injected",
                          "alert", "reroute", "fault_recovered", "alert", "reroute",
                          "fault_recovered", "alert", "reroute"));
}

TEST(FaultScenarios, AllDLinksOfAPairAreCutAndTrafficGoesOverTheThirdSupernode) {
  const RunResult result = ExampleResult("pair-cut");
  ASSERT_THAT(result.reroutes, SizeIs(1));
  EXPECT_THAT(result.reroutes[0].down, SizeIs(4));
  EXPECT_EQ(result.reroutes[0].unreachable_pairs, 0u);
  EXPECT_NE(result.reroutes[0].first_packet, kNever);
  EXPECT_EQ(result.total.messages_delivered, 12u * 11);
  EXPECT_THAT(Kinds(result), ElementsAre("fault_selected", "fault_injected", "alert", "reroute"));
}

TEST(FaultScenarios, SwappedCablesAreNamedWithWhatIsWiredWhere) {
  const RunResult result = ExampleResult("miswired");
  ASSERT_THAT(result.reroutes, SizeIs(2));
  EXPECT_THAT(result.reroutes[0].down, SizeIs(2));
  EXPECT_THAT(result.reroutes[1].up, SizeIs(2));
  EXPECT_EQ(result.reroutes[0].unreachable_pairs, 0u);
  const auto told = std::find_if(result.events.begin(), result.events.end(),
                                 [](const FabricEvent& event) { return event.kind == "miswired"; });
  ASSERT_NE(told, result.events.end());
  for (const char* end : {"sn0-d0-h0:D0", "sn0-d0-h1:D0", "sn1-d0-h", "sn2-d0-h"})
    EXPECT_THAT(told->text, HasSubstr(end));
  EXPECT_GE(told->at, 100 * kUs);
  EXPECT_LE(told->at, 125 * kUs) << "by the first probe";
}

TEST(FaultScenarios, AFaultWhoseAlertIsSuppressedIsNotReroutedAndPacketsKeepDying) {
  const RunResult result = ExampleResult("silent");
  ASSERT_GE(result.reroutes.size(), 1u);
  EXPECT_EQ(result.reroutes[0].raised, 120 * kUs)
      << "when the alert gets through, 100 us after the link died";
  EXPECT_GT(result.tallies[1].losses.lost, 20u);
  EXPECT_EQ(result.tallies[1].losses.lost,
            Dropped(result, DropReason::kLinkDown) + Dropped(result, DropReason::kTruncated));
  EXPECT_GT(Dropped(result, DropReason::kWindowDown), 0u);
  EXPECT_GT(result.clock.skew_max_ever, result.clock.bound);
}

TEST(FaultScenarios, ATreeWithADeadCauIsGivenUpWithAReason) {
  const RunResult result = ExampleResult("cau-down");
  EXPECT_GT(Dropped(result, DropReason::kCauDown), 0u);
  ASSERT_THAT(result.trees, SizeIs(1));
  ASSERT_FALSE(result.trees[0].repairs.empty());
  EXPECT_EQ(result.trees[0].repairs[0].problem.code, TreeProblem::Code::kUnacknowledged);
  for (const CauTaskResult& task : result.cau_tasks) {
    EXPECT_EQ(task.steps_wrong, 0u);
    EXPECT_NE(task.reason, "") << task.node;
  }
}

TEST(FaultScenarios, OfEveryKindOneAfterTheOtherHasItsEffectAndNothingIsLostForGood) {
  const RunResult result = ExampleResult("every-fault");
  std::set<FaultKind> kinds;
  for (const FaultStatus& fault : result.faults) {
    const std::string& id = fault.spec.id;
    kinds.insert(fault.spec.kind);
    EXPECT_EQ(fault.phase, FaultPhase::kRecovered) << id;
    EXPECT_EQ(fault.injections, id == "flap" ? 3u : 1u) << id;
    const auto rerouted =
        std::count_if(result.reroutes.begin(), result.reroutes.end(), [&](const Reroute& r) {
          return r.raised >= fault.begins_at && r.raised < fault.begins_at + 30 * kUs &&
                 !r.down.empty();
        });
    Losses cost;  // a clock that drifts has none to tell
    for (const FaultTally& tally : result.tallies) {
      if (tally.fault == fault.number) cost = tally.losses;
    }
    const std::set<FaultKind> replayed = {FaultKind::kBitErrors, FaultKind::kCorruptNext,
                                          FaultKind::kPortDown};
    const std::set<FaultKind> lost = {
        FaultKind::kLinkDown, FaultKind::kFlap,       FaultKind::kHubDown,    FaultKind::kPartition,
        FaultKind::kHfiDown,  FaultKind::kWindowDown, FaultKind::kTableDamage};
    const std::set<FaultKind> away = {FaultKind::kLinkDown,  FaultKind::kPortDown,
                                      FaultKind::kFlap,      FaultKind::kHubDown,
                                      FaultKind::kPartition, FaultKind::kMiswired};
    EXPECT_TRUE(cost.replayed > 0 || !replayed.contains(fault.spec.kind)) << id;
    EXPECT_TRUE(cost.lost > 0 || !lost.contains(fault.spec.kind)) << id;
    EXPECT_EQ(rerouted > 0, away.contains(fault.spec.kind) && id != "unheard") << id;
  }
  EXPECT_THAT(kinds, SizeIs(kFaultKinds));
  EXPECT_EQ(result.total.messages_failed, 0u);
  EXPECT_EQ(result.total.messages_delivered, result.total.messages_sent);
  EXPECT_EQ(result.reroutes.back().unreachable_pairs, 0u);
}

}  // namespace
}  // namespace percs
