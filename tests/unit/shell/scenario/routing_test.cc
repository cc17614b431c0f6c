// The `routing` section: what arrives in the machine's struct, and what is refused.
#include "emulator/routing/planner.h"
#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/scenario/build.h"
#include "proto/scenario/reader.h"
#include "proto/scenario/route_tables_codec.h"
#include "tests/support/scenario_text.h"

namespace percs {
namespace {

using ::testing::HasSubstr;

std::string RoutingError(const std::string& yaml) {
  const auto scenario = Build(yaml);
  return scenario.ok() ? "no error" : std::string(scenario.status().message());
}

constexpr char kFour[] = "topology: {supernodes: 4, drawers: 1, hubs: 2}\n";

TEST(Routing, FieldsArriveAndTheWorkloadsOwnWin) {
  const auto scenario = Build(
      std::string(kFour) +
      "routing: {fifo: {mode: hw_indirect, selection: random}, rdma: {mode: hw_direct_striped}}\n"
      "workload:\n"
      "  traffic: rdma\n"
      "  routing: {rdma: {mode: adaptive, adaptive_threshold: 7, adaptive: ugal_g}}\n"
      "  pattern: {pattern: uniform, count: 1}\n");
  ASSERT_TRUE(scenario.ok()) << scenario.status();
  RouteSetting fifo, rdma;
  fifo.mode = RouteMode::kHwIndirect;
  fifo.selection = MiddleSelection::kRandom;
  rdma.mode = RouteMode::kAdaptive;
  rdma.adaptive_threshold = 7;
  rdma.adaptive = AdaptiveAlgorithm::kUgalG;
  EXPECT_EQ(scenario->routing.fifo, fifo);
  EXPECT_EQ(scenario->routing.rdma, rdma);
  EXPECT_EQ(scenario->routing.workload, TrafficClass::kRdma);
}

TEST(Routing, APacketHasItsOwnRoute) {
  const auto scenario =
      Build(std::string(kFour) +
            "workload: {packets: [{source: sn0-d0-h0, destination: sn1-d0-h0,\n"
            "                      route: {mode: sw_indirect, middle_supernode: 2}}]}");
  ASSERT_TRUE(scenario.ok()) << scenario.status();
  const auto& packet = std::get<ScriptedWorkload>(scenario->workload).packets.at(0);
  ASSERT_TRUE(packet.route.has_value());
  EXPECT_EQ(packet.route->mode, RouteMode::kSwIndirect);
  EXPECT_EQ(packet.route->middle, 2);
}

TEST(Routing, ASelectionOfMiddlesMayStandWithEveryMode) {
  for (const char* mode : {"hw_direct", "hw_direct_striped", "sw_indirect", "adaptive"}) {
    const auto scenario =
        Build(fmt::format("{}routing: {{fifo: {{mode: {}, selection: random}}}}\n"
                          "workload: {{ticks: {{}}}}",
                          kFour, mode));
    ASSERT_TRUE(scenario.ok()) << scenario.status();
    EXPECT_EQ(scenario->routing.fifo.selection, MiddleSelection::kRandom) << mode;
  }
}

TEST(Routing, HubsTellWhatEitherKindOfTrafficNeeds) {
  const auto reports = [](const std::string& fifo, const std::string& rdma) {
    const auto scenario = Build(fmt::format(
        "{}routing: {{fifo: {{mode: adaptive, adaptive: {}}}, rdma: {{mode: adaptive, adaptive: "
        "{}}}}}\nworkload: {{ticks: {{}}}}",
        kFour, fifo, rdma));
    EXPECT_TRUE(scenario.ok()) << scenario.status();
    return scenario->routing.reports();
  };
  EXPECT_EQ(reports("ugal_l", "ugal_l"), CongestionReport::kNone);
  EXPECT_EQ(reports("ugal_l", "pb"), CongestionReport::kBits);
  EXPECT_EQ(reports("ugal_g", "pb"), CongestionReport::kCounts);
}

TEST(Routing, WhatNoMachineCanDoIsRefusedAtItsPlace) {
  const std::string fifo = std::string(kFour) + "routing: {fifo: ";
  EXPECT_THAT(RoutingError(fifo + "{mode: hw_sideways}}"), HasSubstr("hw_sideways"));
  EXPECT_THAT(RoutingError(fifo + "{mode: hw_indirect, middle_supernode: 1}}"),
              testing::AllOf(HasSubstr("a.yaml:2:"), HasSubstr("routing.fifo"),
                             HasSubstr("middle_supernode is only for sw_indirect")));
  EXPECT_THAT(RoutingError(fifo + "{mode: sw_indirect, middle_supernode: 4}}"),
              HasSubstr("middle_supernode 4 does not exist; there are supernodes 0 to 3"));
  EXPECT_THAT(RoutingError(fifo + "{mode: hw_direct, adaptive_threshold: 3}}"),
              HasSubstr("adaptive_threshold is only for adaptive"));
  EXPECT_THAT(RoutingError(fifo + "{mode: hw_indirect, adaptive: pb}}"),
              HasSubstr("adaptive: pb is only for mode adaptive, not for hw_indirect"));
  EXPECT_THAT(RoutingError("topology: {supernodes: 2, drawers: 1, hubs: 2}\n"
                           "workload: {routing: {rdma: {mode: hw_indirect}}, ticks: {}}"),
              testing::AllOf(HasSubstr("workload.routing.rdma"), HasSubstr("at least 3")));
}

TEST(Routing, TablesWithAnotherHashAreRefusedWithBoth) {
  const auto topology = Topology::Create({1, 1, 2, 0});
  const TableSet planned = Planner(*topology).Plan(Failures());
  NodeTablesList list;
  TablesToProto(
      {0, 1}, [&](NodeId node) { return planned[node]; }, &list);
  EXPECT_TRUE(TablesFromProto(list, 2).ok());
  list.Mutable(1)->set_hash(1);
  const auto wrong = TablesFromProto(list, 2).status();
  EXPECT_EQ(wrong, absl::InvalidArgumentError(fmt::format(
                       "tables: node 1 says hash 0000000000000001, but its tables have {:016x}",
                       planned[1]->Hash())));
}

TEST(Routing, ATableThatDoesNotFitIsRefusedWithTheArithmetic) {
  EXPECT_THAT(RoutingError(std::string(kFour) + "parameters: {route_table_entries: 5}"),
              HasSubstr("2 + 4 = 6, but route_table_entries is 5; write at least 6"));
  EXPECT_EQ(RoutingError(std::string(kFour) + "parameters: {route_table_entries: 6}"), "no error");
}

}  // namespace
}  // namespace percs
