// Method: machines of four supernodes and of one, whose hubs send to each other, run alone and with
// somebody who waits for the end of every window, or of every third one.
#include <gtest/gtest.h>

#include <vector>

#include "emulator/sim/run.h"

namespace percs {
namespace {

std::vector<TopologySpec> Topologies() { return {{4, 1, 4, 1}, {1, 2, 4, 1}}; }

RunResult RunWatched(const TopologySpec& topology, std::uint64_t every) {
  Scenario scenario;
  scenario.topology = topology;
  AllToAllWorkload workload;
  workload.bytes = 2048;
  scenario.workload = workload;
  RunOptions options;
  Time seen = 0;
  options.watch = [&](const Fabric& fabric, std::uint64_t windows, bool) {
    const bool awaited = every > 0 && windows % every == 0;
    if (every == 1 && windows > 1) {
      EXPECT_LE(fabric.now() - seen, 2 * fabric.lookahead());
    }
    seen = fabric.now();
    return awaited;
  };
  auto result = RunScenario(scenario, options);
  EXPECT_TRUE(result.ok()) << result.status();
  return *std::move(result);
}

TEST(WatchedRun, WindowsAreShorterAndTheResultIsTheSame) {
  for (const TopologySpec& topology : Topologies()) {
    SCOPED_TRACE(topology.supernodes);
    const RunResult alone = RunWatched(topology, 0), always = RunWatched(topology, 1),
                    now_and_then = RunWatched(topology, 3);
    EXPECT_GT(always.windows, 2 * alone.windows);
    EXPECT_GT(now_and_then.windows, alone.windows);
    EXPECT_LT(now_and_then.windows, always.windows);
    for (const RunResult* watched : {&always, &now_and_then}) {
      EXPECT_EQ(watched->digest, alone.digest);
      EXPECT_EQ(watched->virtual_time, alone.virtual_time);
      EXPECT_EQ(watched->flit_hops, alone.flit_hops);
    }
  }
}

}  // namespace
}  // namespace percs
