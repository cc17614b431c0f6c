// Method: two processes with a drawer each, and traces so small that what happens next is worked
// out by hand; then random traces in one process and in several, each of which runs as far as this
// allows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "emulator/base/random.h"
#include "emulator/routing/planner.h"
#include "emulator/scenario/link_settings.h"
#include "emulator/sim/fabric.h"
#include "emulator/sim/run.h"
#include "emulator/workload/goal.h"
#include "fmt/format.h"
#include "tests/support/random_trace.h"
#include "tests/support/seed.h"
#include "tests/support/split_run.h"

namespace percs {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Of the defaults: what a send costs, a flit into the ISR, and one over LL and LR.
constexpr Time kOverhead = 725'000, kInjected = 5'334, kOverLl = 60'334, kOverLr = 100'600;
constexpr Time kCrossing = 75'000;  // of a credit over LR

// Four ranks, each on its hub, of which the last two are in the other process.
Scenario Ranks(const std::vector<std::string>& ranks) {
  Scenario s;
  s.topology = {1, 2, 2, 1};
  std::string text = "num_ranks 4\n";
  for (std::size_t r = 0; r < 4; ++r)
    text += fmt::format("rank {} {{\n{}\n}}\n", r, r < ranks.size() ? ranks[r] : "");
  TraceWorkload trace;
  auto parsed = ParseGoal(text, "t");
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  if (parsed.ok()) trace.trace = *std::move(parsed);
  s.workload = trace;
  return s;
}

// The process of the first two.
std::unique_ptr<Fabric> First(const Scenario& scenario) {
  Placement placement;
  placement.process_of_node = {0, 0, 1, 1};
  placement.processes = 3;
  placement.manager_process = 2;
  auto fabric = Fabric::Create(scenario, placement).value();
  const auto tables = Planner(fabric->topology()).Plan(Failures());
  for (NodeId node = 0; node < 4; ++node) fabric->InstallTables(node, tables[node]);
  fabric->Start();
  return fabric;
}

void RunTo(Fabric& fabric, Time end) {
  while (fabric.now() < end) fabric.RunWindow(std::min(end, fabric.now() + fabric.lookahead()));
}

TEST(EarliestOutput, AfterACalculationASendTakesItsOverhead) {
  const auto fabric = First(Ranks({"calc 10000"}));
  EXPECT_EQ(fabric->NextEventTime(), 10 * kMicrosecond);
  EXPECT_EQ(fabric->EarliestOutput(), 10 * kMicrosecond + kOverhead + kInjected + kOverLr);
}

TEST(EarliestOutput, OfASendItIsTheArrivalOfItsFlit) {
  const auto fabric = First(Ranks({"send 8b to 2", "", "recv 8b from 0"}));
  const Time arrival = kOverhead + kInjected + kOverLr;
  EXPECT_EQ(fabric->EarliestOutput(), arrival);
  RunTo(*fabric, kOverhead + 1);
  EXPECT_EQ(fabric->NextEventTime(), kOverhead + kInjected) << "it enters the ISR";
  EXPECT_EQ(fabric->EarliestOutput(), arrival);
  RunTo(*fabric, kOverhead + kInjected + 1);
  EXPECT_EQ(fabric->outbox(1).EarliestEvent(), arrival);
  EXPECT_GT(fabric->EarliestOutput(), 50 * kMicrosecond) << "it is sent again if nothing comes";
}

// Several packets wait for the one that enters the ISR.
TEST(EarliestOutput, SendQueuesAreSentFrom) {
  const auto fabric =
      First(Ranks({"send 8b to 1 tag 1 cpu 0\nsend 8b to 2 tag 2 cpu 1\nsend 8b to 2 tag 3 cpu 2",
                   "recv 8b from 0 tag 1", "recv 8b from 0 tag 2\nrecv 8b from 0 tag 3"}));
  RunTo(*fabric, kOverhead + 1);
  const Time told = fabric->EarliestOutput();
  EXPECT_GE(told, fabric->NextEventTime() + kCrossing);
  RunTo(*fabric, kOverhead + 100 * kNanosecond);
  EXPECT_LE(told, fabric->outbox(1).EarliestArrival());
}

TEST(EarliestOutput, WhatStaysInADrawerLeadsToNothingElsewhereBeforeAnotherSend) {
  const auto fabric = First(Ranks({"send 8b to 1", "recv 8b from 0"}));
  const Time next_send = kOverhead + kInjected + kOverLr;
  const Time in_isr = kOverhead + kInjected, there = in_isr + kOverLl;
  RunTo(*fabric, kOverhead + 1);
  EXPECT_EQ(fabric->NextEventTime(), in_isr);
  EXPECT_EQ(fabric->EarliestOutput(), in_isr + next_send);
  RunTo(*fabric, in_isr + 1);
  EXPECT_EQ(fabric->NextEventTime(), there);
  EXPECT_EQ(fabric->EarliestOutput(), there + next_send);
  RunTo(*fabric, there + 1);
  EXPECT_EQ(fabric->EarliestOutput(), fabric->NextEventTime() + next_send) << "its delivery";
  RunTo(*fabric, 10 * kMicrosecond);
  EXPECT_TRUE(fabric->outbox(1).empty());
  EXPECT_TRUE(fabric->work_left().done());
}

TEST(EarliestOutput, WithoutASendOverheadWhatStaysMayLeadToASendAtOnce) {
  Scenario s =
      Ranks({"send 8b to 1", "a: recv 8b from 0\nb: send 8b to 2\nb requires a", "recv 8b from 1"});
  s.parameters.send_overhead = s.parameters.receive_overhead = 0;
  const auto fabric = First(s);
  Time told = 0;
  while (fabric->outbox(1).empty() && fabric->now() < kMicrosecond) {
    EXPECT_GE(fabric->EarliestOutput(), told) << "nothing has arrived meanwhile";
    told = fabric->EarliestOutput();
    fabric->RunWindow(fabric->NextEventTime() + 1);
  }
  EXPECT_LE(told, fabric->outbox(1).EarliestArrival());
}

TEST(EarliestOutput, WhatWaitsForCreditsGoesOnAtAnyTime) {
  const auto fabric = First(Ranks({"send 65536b to 2", "calc 100000", "recv 65536b from 0"}));
  RunTo(*fabric, 2 * kMicrosecond);
  ASSERT_THAT(fabric->AwaitedForCredits(), ElementsAre(1));
  EXPECT_EQ(fabric->EarliestOutput(), fabric->NextEventTime() + kCrossing);
}

TEST(EarliestOutput, AfterALossRoutesMayLeadAnywhere) {
  const auto fabric = First(Ranks({"calc 10000"}));
  EXPECT_GT(fabric->EarliestOutput(), fabric->NextEventTime() + kCrossing);
  fabric->Lose({{2, 3}, "somebody", 1, 0});
  EXPECT_EQ(fabric->EarliestOutput(), fabric->NextEventTime() + kCrossing);
}

TEST(EarliestOutput, WorkloadsThatSayNothingMaySendWithEachEvent) {
  Scenario s = Ranks({});
  s.workload = AllToAllWorkload{128};
  const auto fabric = First(s);
  EXPECT_EQ(fabric->EarliestOutput(), fabric->NextEventTime() + kCrossing);
}

TEST(EarliestOutput, RandomTracesHaveOneDigestHoweverTheyAreDivided) {
  PERCS_TRACE_SEED();
  RandomStream random(test::Seed(), "output");
  for (int i = 0; i < 60; ++i) {
    Scenario s;
    s.topology = {1 + static_cast<int>(random.Below(2)), 2, 2, 1};
    s.seed = random.Below(1'000);
    TraceWorkload trace = test::RandomTrace(random, 2 + random.Below(10), 60, 60);
    const std::uint64_t longer = 1 + random.Below(2) * 20;  // buffers of LR hold 2 KiB
    for (auto& rank : trace.trace.ranks) {
      for (GoalOp& op : rank) op.size *= longer;
    }
    s.workload = trace;
    if (random.Below(4) == 0) {
      const auto links = Topology::Create(s.topology)->Links();
      const LinkEnd link = links[random.Below(static_cast<std::uint32_t>(links.size()))];
      const Time down = random.Below(100) * kMicrosecond;
      s.faults = {SetLinkDown(down, link),
                  SetLinkUp(down + random.Below(100) * kMicrosecond, link)};
    }
    if (random.Below(4) == 0) s.parameters.send_overhead = random.Below(100) * kNanosecond;
    if (random.Below(4) == 0) s.parameters.receive_overhead = 0;
    if (random.Below(4) == 0) s.parameters.flow_window_packets = 1;
    const auto one = RunScenario(s, {});
    ASSERT_TRUE(one.ok()) << one.status();
    for (const int processes : {2, 3, 4}) {
      test::SplitOptions options = test::Processes(processes);
      options.seed = random.Below(1'000'000);
      const auto split = test::SplitRun(s, options);
      ASSERT_TRUE(split.ok()) << split.status() << "; trace " << i;
      EXPECT_THAT(split->violations, IsEmpty());
      EXPECT_EQ(split->digest, one->digest) << processes << " processes, trace " << i;
    }
  }
}

}  // namespace
}  // namespace percs
