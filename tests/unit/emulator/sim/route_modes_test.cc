// Packets of every mode over what random failures leave, and what looping tables do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "absl/strings/str_split.h"
#include "emulator/base/random.h"
#include "emulator/routing/planner.h"
#include "emulator/scenario/link_settings.h"
#include "emulator/sim/run.h"
#include "tests/support/ring.h"
#include "tests/support/seed.h"

namespace percs {
namespace {

// A fabric with these tables, whoever made them, and links down from the start.
std::unique_ptr<Fabric> Build(const Scenario& scenario, const TableSet& tables) {
  const NodeId nodes = Topology::Create(scenario.topology)->nodes();
  auto fabric = Fabric::Create(scenario, Placement::Single(nodes));
  EXPECT_TRUE(fabric.ok()) << fabric.status();
  for (NodeId node = 0; node < nodes; ++node) (*fabric)->InstallTables(node, tables[node]);
  (*fabric)->Start();
  return *std::move(fabric);
}

// False if it stops with work left.
bool RunToTheEnd(Fabric& fabric) {
  while (!fabric.work_left().done()) {
    const Time next = fabric.NextEventTime();
    if (next == kNever) return false;
    fabric.RunWindow(next + fabric.lookahead());
  }
  return true;
}

RouteSetting AnyMode(RandomStream* random, int supernodes) {
  RouteSetting setting;
  setting.mode = static_cast<RouteMode>(random->Below(supernodes > 2 ? 5 : 2));
  const bool picks = setting.mode == RouteMode::kHwIndirect || setting.mode == RouteMode::kAdaptive;
  if (picks && random->Below(2)) setting.selection = MiddleSelection::kRandom;
  return setting;
}

TEST(RouteModesProperty, EveryPairThatTablesServeIsDeliveredInEveryMode) {
  PERCS_TRACE_SEED();
  RandomStream random(test::Seed(), "route_modes_property");
  std::array<std::uint64_t, kPacketRouteModes> packets{};
  for (int round = 0; round < 1000; ++round) {
    Scenario scenario;
    do {
      scenario.topology = {
          1 + static_cast<int>(random.Below(5)), 1 + static_cast<int>(random.Below(2)),
          1 + static_cast<int>(random.Below(3)), 1 + static_cast<int>(random.Below(3))};
    } while (!Topology::Create(scenario.topology).ok());
    const Topology topology = Topology::Create(scenario.topology).value();
    Failures failures;
    const std::vector<LinkEnd> links = topology.Links();
    for (std::uint32_t n = links.empty() ? 0 : random.Below(4); n > 0; --n) {
      const LinkEnd link = links[random.Below(static_cast<std::uint32_t>(links.size()))];
      if (!failures.links.insert({link.node, link.port}).second) continue;
      scenario.faults.push_back(SetLinkDown(0, link));
    }
    const TableSet tables = Planner(topology).Plan(failures);
    const auto report = CheckTables(topology, failures, tables, VcPolicy::kPosition);
    ASSERT_TRUE(report.ok()) << report.status();
    ScriptedWorkload script;
    for (NodeId a = 0; a < topology.nodes(); ++a) {
      for (NodeId b = 0; b < topology.nodes(); ++b) {
        if (a == b) continue;
        const Time at = 1 + random.Below(1000);
        script.packets.push_back({at, a, b, 0, 0, 128, AnyMode(&random, topology.supernodes())});
      }
    }
    scenario.workload = script;
    scenario.reroute = false;
    const auto fabric = Build(scenario, tables);
    ASSERT_TRUE(RunToTheEnd(*fabric));
    NodeStats total;
    for (NodeId node = 0; node < topology.nodes(); ++node) {
      const NodeStats& s = fabric->stats(node);
      total.packets_delivered += s.packets_delivered;
      total.hops_delivered += s.hops_delivered;
      for (int i = 0; i < kPacketRouteModes; ++i) packets[i] += s.packets_by_mode[i];
      for (int i = 0; i < kDropReasons; ++i) {
        if (i == static_cast<int>(DropReason::kNoRoute)) continue;
        if (i == static_cast<int>(DropReason::kNoVcPosition)) continue;
        ASSERT_EQ(s.packets_dropped[i], 0u) << DropReasonName(static_cast<DropReason>(i));
      }
    }
    // What no direct route serves may still get through over a middle supernode.
    ASSERT_GE(total.packets_delivered + report->unreachable_pairs, script.packets.size());
    ASSERT_LE(total.hops_delivered, 5 * total.packets_delivered);
  }
  for (int i = 1; i < kPacketRouteModes; ++i) EXPECT_GT(packets[i], 1000u) << i;
}

TEST(RouteModes, ACycleOfChannelsIsRefusedAndForcedInDeadlocksAsItsWitness) {
  const Scenario scenario = test::Ring(VcPolicy::kSingle);
  const Topology topology = Topology::Create(scenario.topology).value();
  const TableSet tables = test::RingTables(topology);
  RunOptions options;
  options.tables = &tables;
  const auto refused = RunScenario(scenario, options);
  ASSERT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
  const auto fabric = Build(scenario, tables);
  ASSERT_FALSE(RunToTheEnd(*fabric));
  const std::string deadlock = DescribeDeadlock(topology, fabric->WaitEdges());

  std::set<std::string> proven, stuck;
  const std::string message(refused.status().message());
  const std::string cycle = message.substr(message.find("channels: ") + 10);
  for (const auto& channel : absl::StrSplit(cycle, " > ")) {
    proven.insert(std::string(channel.substr(0, channel.find(' '))));
  }
  for (const auto& wait : absl::StrSplit(deadlock, "; ")) {
    const std::string output(wait.substr(wait.find("-> ") + 3));
    stuck.insert(output.substr(0, output.find(' ')));
  }
  EXPECT_EQ(proven.size(), 3u) << cycle;
  EXPECT_EQ(proven, stuck) << cycle << "\n" << deadlock;
}

TEST(RouteModes, TheSameRingWithPositionsIsProvenAndDrains) {
  const Scenario scenario = test::Ring(VcPolicy::kPosition);
  const TableSet tables = test::RingTables(Topology::Create(scenario.topology).value());
  RunOptions options;
  options.tables = &tables;
  const auto result = RunScenario(scenario, options);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->total.packets_delivered, 3u);
}

// Under positions no table can deadlock: a packet that goes round drops when its positions end.
TEST(RouteModesProperty, RandomLoopingTablesNeverDeadlockUnderPositions) {
  PERCS_TRACE_SEED();
  RandomStream random(test::Seed(), "looping_tables");
  std::uint64_t looped = 0;
  for (int round = 0; round < 500; ++round) {
    Scenario scenario;
    scenario.topology = {1 + static_cast<int>(random.Below(4)), 1, 3, 2};
    scenario.reroute = false;
    const Topology topology = Topology::Create(scenario.topology).value();
    scenario.parameters.ll.buffer_flits = scenario.parameters.d.buffer_flits = 4;
    TableSet tables;
    for (NodeId node = 0; node < topology.nodes(); ++node) {
      std::vector<PortId> ports;
      for (PortId p = 0; p < kLinkPorts; ++p) {
        if (topology.connected(node, p)) ports.push_back(p);
      }
      const auto any = [&] {
        auto table = std::make_shared<RouteTable>();
        const auto size = static_cast<std::uint32_t>(ports.size());
        for (int i = 0; i < 3; ++i) table->intra.push_back(PortBit(ports[random.Below(size)]));
        for (int i = 0; i < topology.supernodes(); ++i) {
          table->inter.push_back(PortBit(ports[random.Below(size)]));
        }
        return table;
      };
      auto hub = std::make_shared<HubTables>();
      for (auto* table : {&hub->source_direct, &hub->source_striped, &hub->source_indirect})
        *table = any();
      for (auto& table : hub->port_direct) table = any();
      for (auto& table : hub->port_indirect) table = any();
      tables.push_back(hub);
    }
    ScriptedWorkload script;
    for (int i = 0; i < 40; ++i) {
      const NodeId from = random.Below(topology.nodes());
      const NodeId to = (from + 1 + random.Below(topology.nodes() - 1)) % topology.nodes();
      script.packets.push_back({0, from, to, 0, 0, 2048, AnyMode(&random, topology.supernodes())});
    }
    scenario.workload = script;
    const auto fabric = Build(scenario, tables);
    ASSERT_TRUE(RunToTheEnd(*fabric)) << "round " << round;
    std::uint64_t ended = 0;
    for (NodeId node = 0; node < topology.nodes(); ++node) {
      const NodeStats& s = fabric->stats(node);
      ended += s.packets_delivered;
      for (const std::uint64_t n : s.packets_dropped) ended += n;
      looped += s.packets_dropped[static_cast<int>(DropReason::kNoVcPosition)];
    }
    ASSERT_EQ(ended, 40u);
  }
  EXPECT_GT(looped, 1000u);
}

}  // namespace
}  // namespace percs
