#include "emulator/routing/link_loads.h"

#include <gtest/gtest.h>

#include "emulator/routing/planner.h"
#include "fmt/format.h"

namespace percs {
namespace {

AllToAllLoads Count(const TopologySpec& spec) {
  const auto topology = Topology::Create(spec);
  EXPECT_TRUE(topology.ok()) << topology.status();
  return CountAllToAll(*topology, Planner(*topology).Plan({}));
}

// PERCS-066, PERCS-067, PERCS-068: the machine of 32 d + 1 supernodes, every link of every hub.
TEST(LinkLoads, AllToAllFollowsTheLawForEveryNumberOfDLinks) {
  for (int d = 1; d <= kDPorts; ++d) {
    SCOPED_TRACE(fmt::format("d = {}", d));
    const AllToAllLoads loads = Count({32 * d + 1, 4, 8, 1});
    const double law = 1 + 64 * d, hubs = 32.0 * (32 * d + 1);
    EXPECT_EQ(loads.ll.min, law);
    EXPECT_EQ(loads.ll.max, law);
    EXPECT_EQ(loads.lr.min, law);
    EXPECT_EQ(loads.lr.max, law);
    EXPECT_EQ(loads.d.min, 1024);
    EXPECT_EQ(loads.d.max, 1024);
    EXPECT_EQ(loads.ll.directions, hubs * 7);
    EXPECT_EQ(loads.lr.directions, hubs * 24);
    EXPECT_EQ(loads.d.directions, hubs * d);
    EXPECT_EQ(loads.routes, hubs * (hubs - 1));
  }
}

TEST(LinkLoads, OneSupernodeUsesEveryLinkOnce) {
  const AllToAllLoads loads = Count({1, 4, 8, 1});
  EXPECT_EQ(loads.ll.min, 1);
  EXPECT_EQ(loads.lr.max, 1);
  EXPECT_EQ(loads.d.directions, 0u);
  EXPECT_EQ(loads.routes, 32 * 31);
}

TEST(LinkLoads, ParallelDLinksShareTheRoutes) {
  const AllToAllLoads loads =
      Count({2, 1, 4, 16});  // every hub owns four D links to the other supernode
  EXPECT_EQ(loads.d.min, 1);
  EXPECT_EQ(loads.d.max, 1);
  EXPECT_EQ(loads.routes, 8 * 7);
}

// PERCS-074, PERCS-076, PERCS-082, PERCS-092 (the last before the injection cap).
TEST(LinkLoads, BoundMatchesThePublishedFormula) {
  const auto bound = [](int d) { return *BoundAllToAll(d); };
  EXPECT_NEAR(bound(1).gb_per_second, 10.303, 0.0005);
  EXPECT_EQ(bound(1).limit, LinkClass::kD);
  EXPECT_NEAR(bound(2).gb_per_second, 20.303, 0.0005);
  EXPECT_NEAR(bound(8).gb_per_second, 80.146, 0.0005);
  EXPECT_EQ(bound(8).limit, LinkClass::kLr);
  EXPECT_EQ(bound(0).gb_per_second, 96);
  EXPECT_EQ(bound(0).limit, LinkClass::kHfi);
  EXPECT_NEAR(BoundAllToAll(0, {24, 5, 10, 1000})->gb_per_second, 155, 0.0005);
  EXPECT_EQ(std::string(BoundAllToAll(17).status().message()), "d = 17: a hub has 0 to 16 D links");
}

}  // namespace
}  // namespace percs
