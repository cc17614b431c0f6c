// Route tables as a file: written, read back, compared, and refused with the place of what is
// wrong.
#include "client/lib/route_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace percs {
namespace {

using ::testing::HasSubstr;

class RouteFileTest : public ::testing::Test {
 protected:
  RouteFile Plan(const Failures& failures) {
    std::vector<NodeId> nodes;
    for (NodeId node = 0; node < topology_.nodes(); ++node) nodes.push_back(node);
    return MakeRouteFile(topology_, 0, nodes, Planner(topology_).Plan(failures));
  }
  // The planned file after one change of its JSON.
  template <typename Change>
  std::string RefusalAfter(Change change) {
    auto json = nlohmann::json::parse(PrintRoutes(Plan({})));
    change(json);
    const auto file = ParseRoutes(json.dump());
    EXPECT_EQ(file.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(file.status().message());
  }
  const Topology topology_ = Topology::Create({4, 1, 2, 1}).value();
};

TEST_F(RouteFileTest, ReadsBackWhatItWrote) {
  const RouteFile file = Plan({{{0, kDFirst}}, {}});
  const auto again = ParseRoutes(PrintRoutes(file));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_THAT(DiffRoutes(file, *again), testing::IsEmpty());
  EXPECT_TRUE(CheckRouteFile(*again, topology_).ok());
  for (NodeId node = 0; node < topology_.nodes(); ++node) {
    EXPECT_EQ(again->tables[node]->closed_middles, file.tables[node]->closed_middles);
  }
}

TEST_F(RouteFileTest, KeepsTheDestinationsOnDetours) {
  TopologySpec spec;
  ASSERT_TRUE(spec.UseGraph({.kind = GraphSpec::Kind::kTorus, .dims = {4}}).ok());
  spec.multicast = {{"all", "s0", {}}};
  const Topology ring = Topology::Create(spec).value();
  const RouteFile intact = MakeRouteFile(ring, 0, {0, 1, 2, 3}, Planner(ring).Plan({}));
  const RouteFile cut =
      MakeRouteFile(ring, 0, {0, 1, 2, 3}, Planner(ring).Plan({{{0, kLlFirst}}, {}}));
  ASSERT_FALSE(cut.tables[1]->detours.empty());
  ASSERT_TRUE(cut.tables[1]->Detours(ring.nodes())) << "the group, too";
  const auto again = ParseRoutes(PrintRoutes(cut));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_THAT(DiffRoutes(cut, *again), testing::IsEmpty());
  EXPECT_EQ(again->tables[1]->detours, cut.tables[1]->detours);
  EXPECT_THAT(DiffRoutes(intact, cut),
              testing::Contains(HasSubstr("s1 destinations on detours: 0 -> ")));
  std::string text = PrintRoutes(cut);
  text.replace(text.find("\"detours\": ["), 12, "\"detours\": [9, ");
  EXPECT_THAT(std::string(ParseRoutes(text).status().message()),
              HasSubstr("detours: there is no destination 9; write 0 to 4"));
}

TEST_F(RouteFileTest, TellsEveryEntryThatDiffers) {
  const RouteFile before = Plan({});
  RouteFile after = before;
  auto hub = std::make_shared<HubTables>(*before.tables[1]);
  auto table = std::make_shared<RouteTable>(*hub->source_striped);
  table->inter[3] = PortBit(kLrFirst) | PortBit(kDFirst);
  hub->source_striped = table;
  after.tables[1] = hub;
  const auto lines = DiffRoutes(before, after);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(lines[0], testing::AllOf(HasSubstr("sn0-d0-h1 source striped inter 3: "),
                                       HasSubstr(" -> LR0 D0")));
}

TEST_F(RouteFileTest, SaysWhereAFileIsWrong) {
  EXPECT_THAT(std::string(ParseRoutes("{").status().message()),
              HasSubstr("not a file of route tables"));
  EXPECT_THAT(RefusalAfter([](auto& j) { j["format"] = "other"; }), HasSubstr("percs-routes-1"));
  EXPECT_EQ(RefusalAfter([](auto& j) { j["nodes"][1]["tables"][0]["inter"][2] = "LL9"; }),
            "sn0-d0-h1: inter entry 2: \"LL9\" is not a port; ports are LL0 to LL6, LR0 to LR23 "
            "and D0 to D15");
  EXPECT_EQ(RefusalAfter([](auto& j) { j["nodes"][0]["tables"][0]["intra"].push_back(""); }),
            "sn0-d0-h0: intra has 3 entries, not 2");
  EXPECT_EQ(RefusalAfter([](auto& j) { j["nodes"][0]["tables"][0]["of"].erase(0); }),
            "sn0-d0-h0: table \"source direct\" is missing");
  EXPECT_THAT(
      RefusalAfter([](auto& j) { j["nodes"][0]["tables"][0]["of"].push_back("LL7 direct"); }),
      HasSubstr("there is no table \"LL7 direct\""));
  EXPECT_THAT(RefusalAfter([](auto& j) {
                j["nodes"][2]["closed_middles"].push_back({1, 4});
              }),
              HasSubstr("sn1-d0-h0: closed_middles: [1, 4] is outside supernodes 0 to 3"));
}

TEST_F(RouteFileTest, TablesOfAnotherMachineAreNotOnesOwn) {
  const auto other = Topology::Create({4, 1, 3, 1}).value();
  EXPECT_EQ(CheckRouteFile(Plan({}), other).message(),
            "route tables of 8 nodes, but the machine has 12");
}

}  // namespace
}  // namespace percs
