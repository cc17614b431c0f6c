// Multicast in whole runs: every member gets every packet once, links carry each once, and a cut
// link only loses what was under way.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "emulator/scenario/link_settings.h"
#include "emulator/sim/run.h"
#include "tests/support/damage_entry.h"
#include "tests/support/split_run.h"

namespace percs {
namespace {

Scenario Everybody(TopologySpec topology, std::uint64_t count) {
  Scenario s;
  s.topology = topology;
  s.topology.multicast = {{"everybody", "sn0-d0-h1", {}}};
  PatternWorkload w;
  w.pattern = Pattern::kMulticast;
  w.count = count;
  w.load = 0;
  w.payload = PayloadMode::kVerified;
  s.workload = w;
  return s;
}

TEST(Multicast, EveryMemberGetsEveryPacketOnce) {
  Scenario s = Everybody({3, 2, 4, 2}, 50);
  std::map<NodeId, std::map<std::uint64_t, int>> copies;
  RunOptions options;
  options.on_delivery = [&](NodeId node, const Delivery& d) { ++copies[node][d.sequence]; };
  const auto result = RunScenario(s, options);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(result->violations, testing::IsEmpty());
  EXPECT_EQ(copies.size(), 23u);
  for (const auto& [node, packets] : copies) {
    EXPECT_NE(node, 1u);
    EXPECT_EQ(packets.size(), 50u);
    for (const auto& [sequence, count] : packets) EXPECT_EQ(count, 1);
  }
  EXPECT_EQ(result->total.packets_created, 50u);
  EXPECT_EQ(result->total.packets_replicated, 50u * 22);
  EXPECT_EQ(result->total.payload_bytes_verified, 50u * 23 * 2048);
  // 23 hubs are reached by 23 hops: no link carries a packet twice.
  EXPECT_EQ(result->packet_hops, 50u * 23);
}

TEST(Multicast, EveryLeafOfANetworkOfSwitchesGetsEveryPacketOnce) {
  const std::vector<GraphSpec> graphs = {
      {.kind = GraphSpec::Kind::kTorus, .dims = {5, 4}},
      {.kind = GraphSpec::Kind::kHyperx, .dims = {4, 3}},
      {.kind = GraphSpec::Kind::kFatTree, .levels = 3, .radix = 4},
      {.kind = GraphSpec::Kind::kListed,
       .names = {"a", "b", "c", "d"},
       .links = {{0, 1}, {1, 2}, {2, 3}, {3, 0}}}};
  for (const GraphSpec& graph : graphs) {
    TopologySpec spec;
    ASSERT_TRUE(spec.UseGraph(graph).ok());
    const Topology topology = Topology::Create(spec).value();
    const std::uint64_t others = topology.leaves() - 1;
    Scenario s = Everybody(spec, 50);
    s.parameters.lr = s.parameters.ll;
    s.topology.multicast[0].source = topology.NodeName(1);
    std::map<NodeId, std::uint64_t> copies;
    RunOptions options;
    options.on_delivery = [&](NodeId node, const Delivery&) { ++copies[node]; };
    const auto result = RunScenario(s, options);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_THAT(result->violations, testing::IsEmpty());
    EXPECT_EQ(copies.size(), others);
    EXPECT_EQ(result->total.payload_bytes_verified, 50 * others * 2048);
    if (graph.kind != GraphSpec::Kind::kFatTree) {
      EXPECT_EQ(result->packet_hops, 50 * others);
    }
    // The first link is cut: all is planned anew.
    auto& w = std::get<PatternWorkload>(s.workload);
    w.count = 0;
    w.load = 0.01;
    w.measure = 200 * kMicrosecond;
    s.faults = {SetLinkDown(50 * kMicrosecond, topology.Links().front())};
    copies.clear();
    const auto cut = RunScenario(s, options);
    ASSERT_TRUE(cut.ok()) << cut.status();
    EXPECT_THAT(cut->violations, testing::IsEmpty());
    ASSERT_EQ(cut->reroutes.size(), 1u);
    for (const auto& [node, count] : copies)
      EXPECT_GT(count, cut->total.packets_created - cut->total.packets_created / 4) << node;
    const auto split = test::SplitRun(s, test::Processes(3));
    ASSERT_TRUE(split.ok()) << split.status();
    EXPECT_EQ(split->digest, cut->digest);
  }
}

TEST(Multicast, OneBlockedBranchHoldsUpNoOther) {
  // The branch to hub 2 finds its link full of other traffic; the one to hub 0 does not wait for
  // it.
  Scenario s;
  s.topology = {1, 1, 3};
  s.topology.multicast = {{"both", "sn0-d0-h1", {"sn0-d0-h0", "sn0-d0-h2"}}};
  ScriptedWorkload script;
  for (int i = 0; i < 50; ++i) script.packets.push_back({0, 1, 2, 0, 0, 2048});
  script.packets.push_back({kMicrosecond, 1, 3, 1, 1, 2048});
  s.workload = script;
  std::map<NodeId, Time> at;
  RunOptions options;
  options.on_delivery = [&](NodeId node, const Delivery& d) {
    if (d.sequence == 51) at[node] = d.time;
  };
  const auto result = RunScenario(s, options);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(result->violations, testing::IsEmpty());
  ASSERT_EQ(at.size(), 2u);
  EXPECT_LT(at[0], at[2]);
}

TEST(Multicast, IsReplannedAroundACutLink) {
  Scenario s = Everybody({2, 1, 4, 1}, 0);
  auto& w = std::get<PatternWorkload>(s.workload);
  w.load = 0.01;
  w.measure = 300 * kMicrosecond;
  s.faults = {SetLinkDown(50 * kMicrosecond,
                          *Topology::Create(s.topology)->ParseLink("sn0-d0-h1/sn0-d0-h3"))};
  std::map<NodeId, std::uint64_t> copies;
  RunOptions options;
  options.on_delivery = [&](NodeId node, const Delivery&) { ++copies[node]; };
  const auto result = RunScenario(s, options);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(result->violations, testing::IsEmpty());
  ASSERT_EQ(result->reroutes.size(), 1u);
  const std::uint64_t sent = result->total.packets_created;
  const std::uint64_t lost = result->total.packets_dropped[static_cast<int>(DropReason::kLinkDown)];
  EXPECT_GT(lost, 0u);
  EXPECT_LT(lost, sent / 4);
  EXPECT_GT(copies[3], sent - sent / 4) << "behind the cut link";
  EXPECT_EQ(copies[0], sent);
}

TEST(Multicast, ADamagedEntryDropsPacketsAndIsWrittenAnew) {
  Scenario s = Everybody({1, 1, 4}, 0);
  auto& w = std::get<PatternWorkload>(s.workload);
  w.load = 0.01;
  w.measure = 200 * kMicrosecond;
  s.faults = {test::DamageEntry(50 * kMicrosecond, 1, {TableKind::kMulticast, kNoPort, false, 0})};
  const auto result = RunScenario(s, {});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(result->violations, testing::IsEmpty());
  const std::uint64_t lost =
      result->total.packets_dropped[static_cast<int>(DropReason::kTableParity)];
  EXPECT_GT(lost, 0u);
  EXPECT_EQ(result->total.packets_delivered, 3 * (result->total.packets_created - lost));
  ASSERT_EQ(result->reroutes.size(), 1u);
  EXPECT_THAT(result->reroutes[0].damaged, testing::ElementsAre(1u));
}

TEST(Multicast, IsTheSameForAnyPlacement) {
  Scenario s = Everybody({2, 2, 3, 2}, 0);
  auto& w = std::get<PatternWorkload>(s.workload);
  w.load = 0.1;
  w.measure = 60 * kMicrosecond;
  s.faults = {
      SetLinkDown(20 * kMicrosecond, *Topology::Create(s.topology)->ParseLink("sn0-d0-h1:LL0"))};
  const auto whole = RunScenario(s, {});
  ASSERT_TRUE(whole.ok()) << whole.status();
  for (const int processes : {2, 5}) {
    const auto split = test::SplitRun(s, test::Processes(processes));
    ASSERT_TRUE(split.ok()) << split.status();
    EXPECT_EQ(split->digest, whole->digest);
    EXPECT_THAT(split->violations, testing::IsEmpty());
  }
}

// Two hubs, and a link that flaps while the second packet arrives. Flits of it are still to come
// when the link is up again; meanwhile the third packet arrives.
Scenario Flapping(Time down) {
  Scenario s;
  s.topology = {1, 1, 2};
  s.topology.multicast = {{"other", "sn0-d0-h0", {"sn0-d0-h1"}}};
  P7ihParameters& p = s.parameters;
  p.ll = {8000, 1000, 20};
  p.hfi.flit_time = p.w_flit_time = 1000;
  p.isr_latency = 1000;
  p.credit_processing = 10'000;
  s.faults = {SetLinkDown(down, {0, 0}), SetLinkUp(down + 1000, {0, 0})};
  s.reroute = false;
  return s;
}

constexpr NodeId kGroup = 2;

// What hub 1 gets: sequence number and time of each.
std::map<std::uint64_t, Time> DeliveriesOf(const Scenario& s) {
  std::map<std::uint64_t, Time> deliveries;
  RunOptions options;
  options.on_delivery = [&](NodeId, const Delivery& d) { deliveries[d.sequence] = d.time; };
  const auto result = RunScenario(s, options);
  EXPECT_TRUE(result.ok()) << result.status();
  if (!result.ok()) return {};
  EXPECT_THAT(result->violations, testing::IsEmpty());
  EXPECT_EQ(result->total.packets_dropped[static_cast<int>(DropReason::kTruncated)], 1u);
  return deliveries;
}

TEST(Multicast, APacketThatArrivesWithThePoisonTailOfTheOneBeforeIsReplicated) {
  // The first packet leaves 4 of 20 credits. With them, 4 flits of the second one leave at 144 ns,
  // and are to arrive from 154 ns to 178 ns; when the first has, the link flaps. The output is busy
  // until 176 ns, so the third packet arrives when the poison tail does, at 186 ns.
  Scenario s = Flapping(155'000);
  s.workload = ScriptedWorkload{{{0, 0, kGroup}, {0, 0, kGroup}, {160'000, 0, kGroup, 0, 0, 1000}}};
  EXPECT_THAT(DeliveriesOf(s), testing::ElementsAre(testing::Key(1), testing::Key(3)));
}

TEST(Multicast, APacketIsReplicatedBeforeTheOneAheadThatIsNotWhole) {
  // The same with a link that has lost lanes, and has them back after the flap: the third packet,
  // of one flit, is whole before the poison tail.
  Scenario s = Flapping(155'000);
  s.parameters.ll.flit_time = 1000;
  s.parameters.ll.lanes = 8;
  s.parameters.ll.spare_lanes = 0;
  s.parameters.ll.lanes_min = 1;
  const auto lose_lanes = [&](Time at, std::uint32_t lost) {
    s.faults.push_back(SetLanesLost(at, {0, 0}, lost));
  };
  lose_lanes(0, 7);
  lose_lanes(156'000, 0);
  s.workload = ScriptedWorkload{{{0, 0, kGroup}, {0, 0, kGroup}, {160'000, 0, kGroup, 0, 0, 100}}};
  const std::map<std::uint64_t, Time> deliveries = DeliveriesOf(s);
  EXPECT_THAT(deliveries, testing::ElementsAre(testing::Key(1), testing::Key(3)));
  // Granted at 176 ns, it arrives at 179 ns, one flit time of the slow link after the last flit,
  // and the poison tail comes at 186 ns.
  EXPECT_LT(deliveries.at(3), 186'000);
}

TEST(Multicast, SmallBuffersAndASecondSenderAreRefused) {
  Scenario s = Everybody({1, 1, 4}, 1);
  s.parameters.ll.buffer_flits = 8;
  const auto result = RunScenario(s, {});
  EXPECT_EQ(std::string(result.status().message()),
            "multicast packets are replicated from buffers that hold a whole packet, 16 flits, but "
            "those of LL links "
            "hold 8; write at least 16");
}

}  // namespace
}  // namespace percs
