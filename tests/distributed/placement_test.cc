// The same scenario has the same digest wherever its hubs live. Method: run it in this process by
// one thread, then over daemons in several placements, and compare digests and counters.
#include <gtest/gtest.h>

#include "tests/distributed/cluster.h"

namespace percs::test {
namespace {

struct Case {
  const char* file;
  std::vector<std::uint64_t> blocks;  // hubs per process
};

class PlacementTest : public ::testing::TestWithParam<Case> {};

TEST_P(PlacementTest, GivesTheDigestOfTheRunInOneProcess) {
  v1::ApplyRequest request = RequestFromFile(GetParam().file);
  const RunResult here = RunHere(request.scenario());
  ClusterOptions options;
  options.daemons = static_cast<std::uint32_t>(GetParam().blocks.size());
  Cluster cluster(options);
  for (const std::uint64_t hubs : GetParam().blocks) request.add_nodes_per_process(hubs);
  const auto there = cluster.Run(request);
  ASSERT_TRUE(there.ok()) << there.status();
  EXPECT_EQ(there->result().digest(), here.digest.ToString());
  EXPECT_EQ(there->result().virtual_time(), here.virtual_time);
  EXPECT_EQ(there->result().total().packets_delivered(), here.total.packets_delivered);
  EXPECT_EQ(there->result().flit_hops(), here.flit_hops);
  EXPECT_EQ(there->result().reroutes_size(), static_cast<int>(here.reroutes.size()));
  EXPECT_EQ(there->result().violations_size(), 0);
  EXPECT_GT(here.total.packets_delivered, 0u);
}

INSTANTIATE_TEST_SUITE_P(
    Scenarios, PlacementTest,
    ::testing::Values(Case{"deploy/scenarios/two-hubs.yaml", {1, 1}},
                      Case{"deploy/scenarios/one-drawer.yaml", {3, 0, 5}},
                      Case{"deploy/scenarios/supernode-alltoall.yaml", {8, 8, 8, 8}},
                      Case{"deploy/scenarios/link-failure.yaml", {8, 8, 8, 8}},
                      Case{"deploy/scenarios/link-failure.yaml", {5, 1, 9, 2, 7, 3, 5}}));

}  // namespace
}  // namespace percs::test
