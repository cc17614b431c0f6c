// How often faults may change their places: up to there a run ends as any other, whatever the
// machine; beyond, it is refused with the arithmetic.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "emulator/sim/check_scenario.h"
#include "emulator/sim/run.h"
#include "tests/support/fault_runs.h"
#include "tests/support/split_run.h"

namespace percs {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

FaultSpec Repeating(FaultKind kind, Time period, Time duration) {
  FaultSpec spec;
  spec.id = "fault";
  spec.kind = kind;
  spec.period = period;
  spec.duration = duration;
  if (kind == FaultKind::kLaneLoss) spec.lanes = 40;
  if (IsOfHubs(kind)) {
    spec.select.in = {0};
  } else {
    spec.select.link = LinkEnd{0, 0};
  }
  return spec;
}

Scenario TwoHubs(const FaultSpec& fault) {
  Scenario s;
  s.topology = {1, 1, 2, 1};
  s.workload = AllToAllWorkload{8192, Schedule::kSpread, true, PayloadMode::kVerified};
  s.faults = {fault};
  return s;
}

std::string Refusal(const Scenario& scenario) {
  for (const RunsOn where : {RunsOn::kProcess, RunsOn::kDaemons}) {
    const absl::Status status = CheckScenario(scenario, where);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_EQ(RunScenario(scenario, {}).status(), status);
  }
  return std::string(CheckScenario(scenario, RunsOn::kProcess).message());
}

// In one process and over several.
void Runs(const Scenario& scenario) {
  const auto one = RunScenario(scenario, {});
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_THAT(one->violations, IsEmpty());
  const auto split = test::SplitRun(scenario, test::Processes(2));
  ASSERT_TRUE(split.ok()) << split.status();
  EXPECT_EQ(split->digest, one->digest);
}

TEST(FaultRate, EveryKindThatChangesALinkRunsAtTheHighestRate) {
  // 2 x 55 ns / 11 ps x 1 place = 10,000; a loss of lanes has two places, one per direction.
  for (const auto& [kind, period] :
       {std::pair(FaultKind::kFlap, 11), std::pair(FaultKind::kLinkDown, 11),
        std::pair(FaultKind::kLaneLoss, 22), std::pair(FaultKind::kHubDown, 11)}) {
    SCOPED_TRACE(FaultKindName(kind));
    Runs(TwoHubs(Repeating(kind, period, 200 * kNanosecond)));
  }
}

TEST(FaultRate, BeyondTheHighestRateTheArithmeticIsToldWithWhatWouldBeRight) {
  EXPECT_EQ(Refusal(TwoHubs(Repeating(FaultKind::kFlap, 2, kUs))),
            "fault fault (flap): it begins and ends once in 2ps, so in a window of virtual time "
            "(the lookahead, 55ns) there are 2 x 55ns / 2ps x 1 places = 55000 changes; at most "
            "10000 are carried out. Write a period of at least 11ps, or select fewer places");
  for (const FaultKind kind : {FaultKind::kLinkDown, FaultKind::kLaneLoss, FaultKind::kHubDown})
    EXPECT_THAT(Refusal(TwoHubs(Repeating(kind, 2, kUs))), HasSubstr("Write a period of at least"));
}

TEST(FaultRate, AFlapOfThirtyThreeNanosecondsRuns) {
  Runs(TwoHubs(Repeating(FaultKind::kFlap, 33 * kNanosecond, kUs)));
}

// Windows of a millisecond: with the longest wires a flap that is slow elsewhere is too fast.
TEST(FaultRate, LongWiresMakeLongWindowsAndTheRateIsOfWindows) {
  Scenario s = TwoHubs(Repeating(FaultKind::kFlap, 20 * kNanosecond, 4 * kMillisecond));
  s.workload = std::monostate();
  s.parameters.ll.wire = kMillisecond;
  s.parameters.management_latency = s.parameters.detect = kMillisecond;
  s.parameters.plan = 20 * kMillisecond;
  s.parameters.install = 5 * kMillisecond;
  s.parameters.retransmit_timeout = 10 * kMillisecond;
  EXPECT_THAT(Refusal(s), HasSubstr("2 x 1ms / 20ns x 1 places = 100000 changes"));
  s.faults[0].period = 200 * kNanosecond;
  Runs(s);
}

TEST(FaultRate, WhatOtherFaultsTakeIsNotThereForOneMore) {
  Scenario s = TwoHubs(Repeating(FaultKind::kFlap, 16, kUs));  // 6,875 changes
  s.faults.push_back(s.faults[0]);
  s.faults[1].id = "one more";
  EXPECT_THAT(Refusal(s), HasSubstr("= 6875 changes, beside 6875 of other faults; at most 10000 "
                                    "are carried out. Write a period of at least 36ps"));
  s.faults[1].period = 36;
  EXPECT_TRUE(CheckScenario(s, RunsOn::kProcess).ok());
}

// More often than the numbers between two swaps of its cable have room for: a swap still gets a
// number above all that the link had.
TEST(FaultRate, ACableCanBeSwappedAfterItsLinkWasDownAMillionTimes) {
  const Topology topology = Topology::Create({1, 1, 2, 1}).value();
  const P7ihParameters parameters;
  FaultService faults(topology, parameters, 1, 0, 55 * kNanosecond, nullptr);
  ASSERT_TRUE(faults.Create(Repeating(FaultKind::kFlap, kUs, 1100 * kMillisecond), 0).ok());
  std::vector<FaultAction> actions;
  std::uint32_t downs = 0;
  for (Time end = kMillisecond; end <= 1100 * kMillisecond; end += kMillisecond) {
    actions.clear();
    faults.Run(end, &actions);
    for (const FaultAction& action : actions) downs += action.begins;
  }
  EXPECT_EQ(downs, 1'100'000u);
  EXPECT_GT(faults.NewGeneration().value(), downs);
}

TEST(FaultRate, MoreLanesThanALinkHasAreRefused) {
  FaultSpec spec = Repeating(FaultKind::kLaneLoss, 0, kUs);
  spec.lanes = 64;
  EXPECT_TRUE(CheckScenario(TwoHubs(spec), RunsOn::kProcess).ok());
  spec.lanes = 99;
  EXPECT_EQ(Refusal(TwoHubs(spec)),
            "fault fault (lane_loss): 99 lanes, but sn0-d0-h0:LL0, which it selects, has 64 + 0 "
            "spare; write 1 to 64, or select links of another class");
}

}  // namespace
}  // namespace percs
