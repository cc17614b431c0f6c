// Method: whole runs in process; windows are counted and times computed by hand.
#include "emulator/workload/ticks.h"

#include <gtest/gtest.h>

#include "emulator/sim/run.h"

namespace percs {
namespace {

Scenario Ticking(std::uint64_t hubs, Time period, std::uint64_t count) {
  Scenario scenario;
  scenario.topology = {1, 2, 2, 1};
  scenario.workload = TickWorkload{hubs, period, count};
  return scenario;
}

TEST(Ticks, EveryWindowHoldsOneEventOfEachTickingHub) {
  const auto result = RunScenario(Ticking(0, 2 * kMicrosecond, 5), {});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->windows, 5u);
  EXPECT_EQ(result->virtual_time, 10 * kMicrosecond);
  EXPECT_EQ(result->total.packets_created, 0u);
  EXPECT_TRUE(result->violations.empty());
}

TEST(Ticks, OnlyTheFirstHubsTick) {
  RunOptions options;
  std::vector<Time> ends;
  options.on_result = [&ends](const NodeResult& node) { ends.push_back(node.last_event); };
  const auto result = RunScenario(Ticking(3, kMicrosecond, 2), options);
  ASSERT_TRUE(result.ok()) << result.status();
  const Time end = 2 * kMicrosecond;
  EXPECT_EQ(ends, (std::vector<Time>{end, end, end, 0}));
}

TEST(Ticks, TheDigestTellsHowLongItTicked) {
  const auto a = RunScenario(Ticking(0, kMicrosecond, 5), {});
  const auto b = RunScenario(Ticking(0, kMicrosecond, 6), {});
  const auto c = RunScenario(Ticking(0, kMicrosecond, 6), {});
  ASSERT_TRUE(a.ok() && b.ok() && c.ok());
  EXPECT_NE(a->digest.ToString(), b->digest.ToString());
  EXPECT_EQ(b->digest.ToString(), c->digest.ToString());
}

}  // namespace
}  // namespace percs
