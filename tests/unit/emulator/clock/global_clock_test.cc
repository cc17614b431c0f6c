// The global clock in whole runs: within its bound, through failures, alike in every placement.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "emulator/routing/clock_plan.h"
#include "emulator/routing/planner.h"
#include "emulator/scenario/link_settings.h"
#include "emulator/sim/run.h"
#include "emulator/workload/ticks.h"
#include "tests/support/seed.h"
#include "tests/support/split_run.h"

namespace percs {
namespace {

Scenario WithClock(TopologySpec topology, Time length) {
  Scenario s;
  s.seed = test::Seed();
  s.topology = topology;
  s.topology.clock = ClockSettings{.period = 10 * kMicrosecond, .drift_ppb = 50'000, .error = 2000};
  TickWorkload ticks;
  ticks.hubs = 1;
  ticks.period = length;
  ticks.count = 1;
  s.workload = ticks;
  return s;
}

FaultSpec Cut(const Scenario& s, Time at, const char* link) {
  return SetLinkDown(at, *Topology::Create(s.topology)->ParseLink(link));
}

TEST(GlobalClock, AllHubsStayWithinTheBound) {
  PERCS_TRACE_SEED();
  const auto result = RunScenario(WithClock({3, 2, 4, 1}, kMillisecond), {});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(result->violations, testing::IsEmpty());
  const ClockReport& clock = result->clock;
  EXPECT_EQ(clock.samples, 100u);
  EXPECT_EQ(clock.steady, 100u);
  EXPECT_EQ(clock.synchronised, 24u);
  EXPECT_THAT(clock.sources, testing::ElementsAre(0u));
  EXPECT_EQ(clock.depth_max, 3u);
  EXPECT_GT(clock.skew_max, 0);
  EXPECT_LE(clock.skew_max, clock.bound);
  // Without symbols they would have drifted apart: 2 x 50 ppm of 1 ms is 100 ns.
  EXPECT_LT(clock.bound, 40 * kNanosecond);
}

TEST(GlobalClock, TheNextHubTakesOverWhenItsSourceIsLost) {
  PERCS_TRACE_SEED();
  Scenario s = WithClock({1, 1, 5}, kMillisecond);
  for (const char* link : {"sn0-d0-h0:LL0", "sn0-d0-h0:LL1", "sn0-d0-h0:LL2", "sn0-d0-h0:LL3"}) {
    s.faults.push_back(Cut(s, 300 * kMicrosecond + 7, link));
  }
  const auto result = RunScenario(s, {});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(result->violations, testing::IsEmpty());
  EXPECT_THAT(result->clock.sources, testing::ElementsAre(0u, 1u));
  EXPECT_EQ(result->clock.synchronised, 4u) << "all but the lost hub";
  EXPECT_GE(result->clock.age_max, 650 * kMicrosecond) << "which holds over";
  EXPECT_GE(result->clock.skew_max_ever, result->clock.skew_max);
}

TEST(GlobalClock, ACutBranchIsPlannedAround) {
  PERCS_TRACE_SEED();
  Scenario s = WithClock({2, 2, 3, 1}, kMillisecond);
  s.faults = {Cut(s, 200 * kMicrosecond, "sn0-d0-h0:LR0")};
  const auto result = RunScenario(s, {});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(result->violations, testing::IsEmpty());
  EXPECT_EQ(result->clock.synchronised, 12u);
  EXPECT_LT(result->clock.age_max, 60 * kMicrosecond);
}

TEST(GlobalClock, IsTheSameForAnyPlacementAndKeepsNoRunAlive) {
  PERCS_TRACE_SEED();
  Scenario s = WithClock({2, 2, 3, 1}, kMillisecond);
  s.workload = AllToAllWorkload{.bytes = 100'000};
  s.faults = {Cut(s, 15 * kMicrosecond, "sn0-d0-h0:LR0")};
  const auto whole = RunScenario(s, {});
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_THAT(whole->violations, testing::IsEmpty());
  EXPECT_GT(whole->clock.samples, 1u);
  for (const int processes : {2, 5}) {
    const auto split = test::SplitRun(s, test::Processes(processes));
    ASSERT_TRUE(split.ok()) << split.status();
    EXPECT_EQ(split->digest, whole->digest);
    EXPECT_EQ(split->clock.skew_max, whole->clock.skew_max);
  }
  // With the clock off, nothing else differs.
  Scenario plain = s;
  plain.topology.clock.reset();
  const auto without = RunScenario(plain, {});
  ASSERT_TRUE(without.ok());
  EXPECT_EQ(without->virtual_time, whole->virtual_time);
  EXPECT_NE(without->digest, whole->digest);
}

TEST(GlobalClock, IsDistributedInANetworkOfSwitches) {
  PERCS_TRACE_SEED();
  TopologySpec torus;
  ASSERT_TRUE(torus.UseGraph({.kind = GraphSpec::Kind::kTorus, .dims = {5, 4}}).ok());
  TopologySpec tree;
  ASSERT_TRUE(
      tree.UseGraph({.kind = GraphSpec::Kind::kFatTree, .levels = 2, .radix = 8, .taper = 2}).ok());
  for (const auto& [topology, link, depth] :
       {std::tuple(torus, "s0-0:LL0", 4u), std::tuple(tree, "l1-s0:LL4", 2u)}) {
    Scenario s = WithClock(topology, kMillisecond);
    s.parameters.lr = s.parameters.ll;
    const auto intact = RunScenario(s, {});
    ASSERT_TRUE(intact.ok()) << intact.status();
    EXPECT_EQ(intact->clock.depth_max, depth);
    s.faults = {Cut(s, 200 * kMicrosecond, link)};
    const auto result = RunScenario(s, {});
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_THAT(result->violations, testing::IsEmpty());
    EXPECT_THAT(result->clock.sources, testing::ElementsAre(0u));
    EXPECT_EQ(static_cast<int>(result->clock.synchronised), topology.hubs);
    EXPECT_LT(result->clock.age_max, 60 * kMicrosecond) << "the tree is planned anew";
    const auto split = test::SplitRun(s, test::Processes(3));
    ASSERT_TRUE(split.ok()) << split.status();
    EXPECT_EQ(split->digest, result->digest);
  }
}

TEST(GlobalClock, ADeadlockIsToldAlthoughTheClockGoesOn) {
  Scenario s = WithClock({1, 1, 2}, kMillisecond);
  GoalTrace trace;
  trace.ranks.resize(2);
  GoalOp receive;
  receive.kind = GoalOp::Kind::kRecv;
  receive.peer = 1;
  receive.size = 8;
  trace.ranks[0].push_back(receive);  // nobody sends
  TraceWorkload w;
  w.trace = trace;
  s.workload = w;
  s.parameters.stall_limit = 100 * kMicrosecond;
  const auto result = RunScenario(s, {});
  EXPECT_EQ(result.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(result.status().message()), testing::HasSubstr("deadlock"));
}

TEST(GlobalClock, TheCheckerRefusesWhatIsNoTreeFromItsSource) {
  TopologySpec spec{1, 1, 4};
  spec.clock = ClockSettings();
  const Topology topology = Topology::Create(spec).value();
  const TableSet good = Planner(topology).Plan({});
  const auto refusal = [&](NodeId node, PortMask clock) {
    TableSet tables = good;
    auto hub = std::make_shared<HubTables>(*good[node]);
    hub->clock = clock;
    tables[node] = hub;
    return std::string(CheckTables(topology, {}, tables, VcPolicy::kPosition).status().message());
  };
  EXPECT_EQ(refusal(0, good[0]->clock), "");
  EXPECT_EQ(refusal(0, 0), "route tables: the clock's tree does not start at sn0-d0-h0");
  EXPECT_EQ(refusal(2, HubTables::kDeliverHere),
            "route tables: the clock's tree starts at sn0-d0-h2, not only at sn0-d0-h0");
  EXPECT_EQ(refusal(0, HubTables::kDeliverHere | PortBit(0)),
            "route tables: the clock's tree does not reach sn0-d0-h2");
  EXPECT_EQ(
      refusal(1, PortBit(topology.LPort(1, 2))),
      "route tables: the clock's tree reaches sn0-d0-h2 twice, the second time from sn0-d0-h1");
}

}  // namespace
}  // namespace percs
