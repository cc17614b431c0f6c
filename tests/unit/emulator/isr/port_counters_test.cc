// Counters per port and VC in situations small enough to count by hand. The reference router counts
// all of them too (tests/differential).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "emulator/sim/run.h"

namespace percs {
namespace {

struct PortsCounted {
  std::vector<NodeStats> nodes;
  RunResult result;
};

PortsCounted RunPortsCounted(const Scenario& scenario) {
  PortsCounted counted;
  RunOptions options;
  options.on_result = [&](const NodeResult& node) { counted.nodes.push_back(node.stats); };
  const auto result = RunScenario(scenario, options);
  EXPECT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(result->violations, testing::IsEmpty());
  counted.result = *result;
  return counted;
}

TEST(PortCounters, EveryHopCountsOnTheVcOfItsPosition) {
  Scenario s;
  s.topology = {2, 1, 2, 1};
  s.workload = ScriptedWorkload{{{0, 1, 3}}};  // L, D, L: VC 0, 0, 1
  const PortsCounted counted = RunPortsCounted(s);
  const auto flits = [&](NodeId node, PortId port, int vc) {
    return counted.nodes[node].ports[port].vc[vc].flits;
  };
  EXPECT_EQ(flits(1, 0, 0) + flits(0, kDFirst, 0), 32u);
  EXPECT_EQ(flits(2, 0, 1), 16u);
  EXPECT_EQ(counted.nodes[2].ports[0].vc[1].packets, 1u);
  EXPECT_EQ(counted.nodes[2].ports[0].vc[1].bytes, 2048u);
  EXPECT_EQ(counted.nodes[3].ports[0].vc[1].most_held, 16u) << "at the receiver's end";
  EXPECT_EQ(counted.nodes[2].ports[0].vc[0].flits, 0u);
}

TEST(PortCounters, WhoWaitsForAnotherLosesOncePerGrant) {
  // Two packets for one link, from two HFI ports: one loses to the other, once.
  Scenario s;
  s.topology = {1, 1, 2, 1};
  s.parameters.w_flit_time = 1;
  s.workload = ScriptedWorkload{{{0, 0, 1, 0, 0}, {0, 0, 1, 1, 0}, {0, 0, 1, 2, 0}}};
  const VcStats link = RunPortsCounted(s).nodes[0].ports[0].vc[0];
  EXPECT_EQ(link.packets, 3u);
  // The first is granted before the others are there (16 x 1 ps later each); the second against the
  // third.
  EXPECT_EQ(link.arbitration_losses, 1u);
  EXPECT_EQ(link.credit_stalls, 0u);
}

TEST(PortCounters, AStallIsCountedWithItsTime) {
  Scenario s;
  s.topology = {1, 1, 2, 1};
  s.parameters.ll.buffer_flits = 1;  // one flit per credit round trip
  s.workload = ScriptedWorkload{{{0, 0, 1, 0, 0, 3 * kFlitBytes}}};
  const PortsCounted counted = RunPortsCounted(s);
  const PortStats& port = counted.nodes[0].ports[0];
  EXPECT_EQ(port.vc[0].credit_stalls, 2u);
  EXPECT_EQ(port.vc[0].credit_stall_ps, port.credit_stall_ps);
  // Flit: ISR 50, 5.334 on LL, wire 5 and (the far end sends it on at once) 5.334 to the HFI, then
  // 5 and 50 for the credit; less the 5.334 ns during which the output was busy.
  EXPECT_EQ(port.credit_stall_ps, 2u * (50'000 + 5'334 + 5'000 + 5'334 + 5'000 + 50'000 - 5'334));
  EXPECT_EQ(port.vc[0].runs_split, 2u);
  EXPECT_EQ(counted.nodes[1].ports[0].vc[0].most_held, 1u);
}

TEST(PortCounters, MaximaOfManyNodesAreTheGreatestAndTheRestAddsUp) {
  NodeStats a, b;
  a.ports[3].vc[1].most_held = 7, b.ports[3].vc[1].most_held = 5;
  a.ports[3].vc[1].flits = 7, b.ports[3].vc[1].flits = 5;
  a.packet_latency.Add(100), b.packet_latency.Add(300);
  a.Add(b);
  EXPECT_EQ(a.ports[3].vc[1].most_held, 7u);
  EXPECT_EQ(a.ports[3].vc[1].flits, 12u);
  EXPECT_EQ(a.packet_latency.max, 300u);
  EXPECT_EQ(a.packet_latency.sum, 400u);
}

}  // namespace
}  // namespace percs
