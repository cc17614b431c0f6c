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

TEST(PathClassifierTest, ANetworkOfSwitchesIsOneClass) {
  TopologySpec spec;
  ASSERT_TRUE(spec.UseGraph({.kind = GraphSpec::Kind::kTorus, .dims = {4, 4, 4}}).ok());
  const auto topology = Topology::Create(spec);
  ASSERT_TRUE(topology.ok()) << topology.status();
  for (NodeId to = 0; to < topology->hubs(); ++to) {
    const PathClassifier classifier(*topology, to);
    for (NodeId from = 0; from < topology->hubs(); ++from)
      EXPECT_EQ(PathLatencies::kSwitches, classifier.Of(from, to, false)) << from << " to " << to;
    EXPECT_EQ(PathLatencies::kEdge, classifier.Of(topology->hubs(), to, false));
  }
}

TEST(PathLatenciesTest, SixteenLinksAreCountedAndMoreAreSixteen) {
  PathLatencies paths;
  for (const int hops : {6, 15, 16, 17, 62}) paths.Add(PathLatencies::kSwitches, hops, 1000);
  const auto& row = paths.cells[PathLatencies::kSwitches];
  EXPECT_EQ(row[6].count, 1u);
  EXPECT_EQ(row[15].count, 1u);
  EXPECT_EQ(row[16].count, 3u);
}

}  // namespace
}  // namespace percs
