// A damaged entry of a route table: never followed, told to network management, written again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "emulator/sim/run.h"
#include "tests/support/damage_entry.h"

namespace percs {
namespace {

constexpr int kParity = static_cast<int>(DropReason::kTableParity);

// Hub 0 sends one packet to hub 1 every microsecond.
Scenario OnePacketPerMicrosecond(int packets) {
  Scenario scenario;
  scenario.topology = {1, 1, 3, 1};
  ScriptedWorkload script;
  for (int i = 0; i < packets; ++i) script.packets.push_back({i * kMicrosecond, 0, 1});
  scenario.workload = script;
  return scenario;
}

TEST(TableParity, ADamagedEntryDropsItsPacketsUntilItIsWrittenAnew) {
  Scenario scenario = OnePacketPerMicrosecond(100);
  scenario.faults = {
      test::DamageEntry(10 * kMicrosecond + 1, 0, {TableKind::kDirect, kNoPort, true, 1})};
  const auto result = RunScenario(scenario, {});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(result->violations, testing::IsEmpty());
  ASSERT_EQ(result->reroutes.size(), 1u);
  const Reroute& repair = result->reroutes[0];
  EXPECT_THAT(repair.damaged, testing::ElementsAre(0u));
  EXPECT_EQ(repair.raised, 11 * kMicrosecond) << "the first packet that needed it";
  EXPECT_EQ(repair.hubs_changed, 0u);
  const std::uint64_t lost = result->total.packets_dropped[kParity];
  EXPECT_EQ(lost, static_cast<std::uint64_t>((repair.committed - repair.raised) / kMicrosecond));
  EXPECT_EQ(result->total.packets_delivered, 100 - lost);
  EXPECT_EQ(result->total.alerts_raised, 1u) << "once for the entry";
}

TEST(TableParity, WithoutReroutesItStaysAndIsNeverFollowed) {
  Scenario scenario = OnePacketPerMicrosecond(20);
  scenario.reroute = false;
  scenario.faults = {test::DamageEntry(0, 0, {TableKind::kDirect, kNoPort, true, 1})};
  const auto result = RunScenario(scenario, {});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->total.packets_dropped[kParity], 20u);
  EXPECT_EQ(result->total.packets_delivered, 0u);
}

TEST(TableParity, AnEntryThatNobodyNeedsGoesUnnoticed) {
  Scenario scenario = OnePacketPerMicrosecond(20);
  scenario.faults = {test::DamageEntry(0, 0, {TableKind::kDirect, kNoPort, true, 2}),
                     test::DamageEntry(0, 0, {TableKind::kIndirect, kNoPort, true, 1}),
                     test::DamageEntry(0, 1, {TableKind::kDirect, 0, true, 2})};
  const auto result = RunScenario(scenario, {});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->total.packets_delivered, 20u);
  EXPECT_EQ(result->total.alerts_raised, 0u);
}

TEST(TableParity, ATransitPacketIsDroppedAtTheDamagedPortTable) {
  Scenario scenario;
  scenario.topology = {2, 1, 2, 1};
  ScriptedWorkload script;
  const auto topology = Topology::Create(scenario.topology).value();
  const NodeId exit = static_cast<NodeId>(std::countr_zero(topology.ExitHubs(0, 1)));
  script.packets.push_back({0, exit ^ 1, 2});
  scenario.workload = script;
  scenario.reroute = false;
  const PortId in = topology.LPort(exit, exit ^ 1);
  scenario.faults = {test::DamageEntry(0, exit, {TableKind::kDirect, in, false, 1})};
  const auto result = RunScenario(scenario, {});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->total.packets_dropped[kParity], 1u);
  EXPECT_THAT(result->violations, testing::IsEmpty());
}

TEST(TableParity, AnEntryThatDoesNotExistCannotBeDamaged) {
  Scenario scenario = OnePacketPerMicrosecond(1);
  for (const TablePlace& place : {TablePlace{TableKind::kDirect, kNoPort, true, 3},
                                  TablePlace{TableKind::kDirect, kHfiFirst, true, 0},
                                  TablePlace{TableKind::kStriped, 0, true, 0}}) {
    scenario.faults = {test::DamageEntry(0, 0, place)};
    EXPECT_EQ(RunScenario(scenario, {}).status().code(), absl::StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace percs
