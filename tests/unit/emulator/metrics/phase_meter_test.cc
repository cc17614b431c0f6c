#include "emulator/metrics/phase_meter.h"

#include <gtest/gtest.h>

namespace percs {
namespace {

TEST(PathClassifierTest, EveryPairOfHubsIsOfTheClassThatItsPlacesSay) {
  constexpr int kSupernodes = 3, kDrawers = 2, kHubs = 3;
  const auto topology =
      Topology::Create({.supernodes = kSupernodes, .drawers = kDrawers, .hubs = kHubs});
  ASSERT_TRUE(topology.ok()) << topology.status();
  for (NodeId to = 0; to < topology->hubs(); ++to) {
    const PathClassifier classifier(*topology, to);
    for (NodeId from = 0; from < topology->hubs(); ++from) {
      for (const bool indirect : {false, true}) {
        PathLatencies::Class expected = PathLatencies::kDrawer;
        if (from / kHubs != to / kHubs) expected = PathLatencies::kSupernode;
        if (from / (kDrawers * kHubs) != to / (kDrawers * kHubs))
          expected = indirect ? PathLatencies::kIndirect : PathLatencies::kDirect;
        EXPECT_EQ(expected, classifier.Of(from, to, indirect)) << from << " to " << to;
      }
    }
    EXPECT_EQ(PathLatencies::kEdge, classifier.Of(topology->hubs(), to, false));
    EXPECT_EQ(PathLatencies::kEdge, classifier.Of(0, topology->hubs(), false));  // a group
  }
  const PathClassifier no_hub(*topology, topology->hubs());
  EXPECT_EQ(PathLatencies::kEdge, no_hub.Of(0, topology->hubs(), false));
}

}  // namespace
}  // namespace percs
