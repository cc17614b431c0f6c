// Method: wait-for edges made by hand on a drawer of three hubs; every one of its inputs is named.
#include <gtest/gtest.h>

#include "emulator/sim/run.h"

namespace percs {
namespace {

// Each hub sends through its LL port to the next: hub 0 LL0 -> hub 1, hub 1 LL1 -> hub 2, hub 2 LL0
// -> hub 0.
class DescribeDeadlockTest : public testing::Test {
 protected:
  Topology topology_ = *Topology::Create({.supernodes = 1, .drawers = 1, .hubs = 3});
  WaitEdge Edge(NodeId from, NodeId at, NodeId to) const {
    return {at, topology_.LPort(at, from), topology_.LPort(at, to), 0, 0};
  }
};

TEST_F(DescribeDeadlockTest, ACycleIsNamedAlsoWhenAnInputWaitsForOtherOutputsToo) {
  // 2 -> 0 -> 1 -> 2 is the cycle; the input of hub 1 also waits for hub 0, where nothing waits.
  const std::vector<WaitEdge> edges = {Edge(2, 0, 1), Edge(0, 1, 2), Edge(0, 1, 0), Edge(1, 2, 0)};
  const std::string text = DescribeDeadlock(topology_, edges);
  for (const WaitEdge& edge : {edges[0], edges[1], edges[3]}) {
    EXPECT_NE(text.find(topology_.LinkName({edge.node, edge.input}) + " VC 0 -> " +
                        topology_.LinkName({edge.node, edge.output}) + " VC 0"),
              std::string::npos)
        << text;
  }
}

TEST_F(DescribeDeadlockTest, WaitingWithoutACycleIsNoDeadlock) {
  EXPECT_EQ(DescribeDeadlock(topology_, {Edge(2, 0, 1), Edge(0, 1, 2)}), "");
  EXPECT_EQ(DescribeDeadlock(topology_, {}), "");
}

}  // namespace
}  // namespace percs
