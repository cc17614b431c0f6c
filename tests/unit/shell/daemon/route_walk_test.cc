// Routes as `percsctl routes` shows them, in a network of switches.
#include "daemon/controller/rpc/route_walk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "emulator/routing/planner.h"

namespace percs {
namespace {

// The channels of the only route.
std::vector<std::uint32_t> Channels(const Topology& ring, const Failures& failures, NodeId from,
                                    NodeId to) {
  const TableSet tables = Planner(ring).Plan(failures);
  const auto routes = WalkRoutes(
      ring, [&](NodeId node) { return tables[node]; }, {.source = from, .destination = to}, 10);
  EXPECT_EQ(routes.size(), 1u);
  EXPECT_EQ(routes[0].problem(), "");
  std::vector<std::uint32_t> vcs;
  for (const v1::RouteHop& hop : routes[0].hops()) {
    if (hop.link() != "HFI") vcs.push_back(hop.vc());
  }
  return vcs;
}

TEST(RouteWalk, ARingChangesTheChannelAndADetourHasItsOwn) {
  TopologySpec spec;
  ASSERT_TRUE(spec.UseGraph({.kind = GraphSpec::Kind::kTorus, .dims = {5}}).ok());
  const Topology ring = Topology::Create(spec).value();
  EXPECT_THAT(Channels(ring, {}, 0, 2), testing::ElementsAre(0, 0));
  EXPECT_THAT(Channels(ring, {}, 4, 1), testing::ElementsAre(0, 1)) << "past the dateline";
  Failures cut;
  cut.links = {{NodeId{1}, kLlFirst}};
  EXPECT_THAT(Channels(ring, cut, 1, 2), testing::ElementsAre(2, 2, 2, 2));
}

}  // namespace
}  // namespace percs
