// The reference router against arithmetic done by hand from docs/semantics.md part B.
#include "tests/differential/reference_router.h"

#include "emulator/base/payload.h"
#include "emulator/base/random.h"
#include "emulator/scenario/link_settings.h"
#include "gtest/gtest.h"

namespace percs::reference {
namespace {

// Round numbers, so that the sums in the comments can be checked by eye.
P7ihParameters RoundNumbers() {
  P7ihParameters p;
  p.ll = {10, 5, 8};
  p.lr = {30, 7, 16};
  p.d = {20, 40, 16};
  p.hfi = {10, 0, 64};
  p.isr_latency = 100;
  p.credit_processing = 50;
  p.w_flit_time = 3;
  return p;
}

// Tables that a test writes by hand; the same ones for the source and for every port of a hub.
struct Bench {
  explicit Bench(TopologySpec spec, P7ihParameters parameters = RoundNumbers())
      : topology(Topology::Create(spec).value()) {
    input.topology = &topology;
    input.parameters = parameters;
    for (NodeId n = 0; n < topology.nodes(); ++n) {
      RouteTable table;
      table.intra.resize(topology.hubs_per_supernode());
      table.inter.resize(topology.supernodes());
      routes.push_back(table);
    }
    for (NodeId a = 0; a < topology.nodes(); ++a) {
      for (NodeId b = 0; b < topology.nodes(); ++b) {
        if (a == b) continue;
        const int sb = topology.supernode_of(b);
        if (topology.supernode_of(a) == sb) {
          routes[a].intra[topology.hub_in_supernode(b)] = PortBit(topology.LPort(a, b));
        } else {
          routes[a].inter[sb] = topology.DPorts(a, sb);
        }
      }
    }
  }
  void Via(NodeId at, NodeId destination, NodeId next) {
    routes[at].intra[topology.hub_in_supernode(destination)] = PortBit(topology.LPort(at, next));
  }
  void Send(Time at, NodeId source, NodeId destination, int flits, WindowId from = 0,
            WindowId to = 0) {
    input.packets.push_back({at, source, destination, from, to, flits * kFlitBytes});
  }
  void Fault(Time at, NodeId a, NodeId b, bool up) {
    const LinkEnd link{a, topology.LPort(a, b)};
    input.faults.push_back(up ? SetLinkUp(at, link) : SetLinkDown(at, link));
  }
  const ReferenceResult& Run() {
    TableSet tables;
    for (const RouteTable& route : routes) {
      auto hub = std::make_shared<HubTables>();
      hub->source_direct = std::make_shared<RouteTable>(route);
      for (auto& port : hub->port_direct) port = hub->source_direct;
      tables.push_back(hub);
    }
    input.tables = {{0, tables}};
    result = RunReference(input);
    return result;
  }
  std::vector<Time> Delivered(NodeId node) const {
    std::vector<Time> times;
    for (const auto& d : result.nodes[node].deliveries) times.push_back(d.time);
    return times;
  }
  const NodeStats& Stats(NodeId node) const { return result.nodes[node].stats; }
  const PortStats& Port(NodeId a, NodeId b) const { return Stats(a).ports[topology.LPort(a, b)]; }
  std::uint64_t Dropped(NodeId node, DropReason reason) const {
    return Stats(node).flits_dropped[static_cast<int>(reason)];
  }

  Topology topology;
  ReferenceInput input;
  std::vector<RouteTable> routes;
  ReferenceResult result;
};

using Times = std::vector<Time>;
const TopologySpec kTwoOnLl{.supernodes = 1, .drawers = 1, .hubs = 2};
const TopologySpec kTwoOnLr{.supernodes = 1, .drawers = 2, .hubs = 1};
const TopologySpec kTwoOnD{.supernodes = 2, .drawers = 1, .hubs = 1, .d_links_per_pair = 2};
const TopologySpec kThree{.supernodes = 1, .drawers = 1, .hubs = 3};
const TopologySpec kFour{.supernodes = 1, .drawers = 1, .hubs = 4};

Time OneWay(const TopologySpec& spec, int flits) {
  Bench bench(spec, P7ihParameters{});
  bench.Send(0, 0, 1, flits);
  bench.Run();
  return bench.Delivered(1).at(0);
}

TEST(ReferenceRouter, OneFlitTakesHandOverPlusTwoHubsPlusTheWire) {
  // Hand-over 5,334; link isr 50,000 + f + wire; HFI port 50,000 + 5,334.
  EXPECT_EQ(OneWay(kTwoOnLl, 1), 5'334 + (50'000 + 5'334 + 5'000) + 55'334);
  EXPECT_EQ(OneWay(kTwoOnLr, 1), 5'334 + (50'000 + 25'600 + 25'000) + 55'334);
  EXPECT_EQ(OneWay(kTwoOnD, 1), 5'334 + (50'000 + 12'800 + 200'000) + 55'334);
}

TEST(ReferenceRouter, SixteenFlitsOnAFastLinkCutThrough) {
  // Handed over at 16 x 5,334; the tail starts 15 x 5,334 after the head and never waits.
  EXPECT_EQ(OneWay(kTwoOnLl, 16), 16 * 5'334 + 60'334 + 15 * 5'334 + 55'334);
}

TEST(ReferenceRouter, SixteenFlitsFromASlowLinkWaitUntilNoUnderrunIsCertain) {
  // LR: the head arrives at 185,944, the last flit at 569,944; the HFI port starts at
  // 569,944 - 15 x 5,334 so that flit 15 goes the moment it is there.
  Bench bench(kTwoOnLr, P7ihParameters{});
  bench.Send(0, 0, 1, 16);
  bench.Run();
  EXPECT_EQ(bench.Delivered(1), Times{569'944 + 55'334});
  EXPECT_EQ(bench.result.nodes[1].grants.at(0).time, 489'934);
  EXPECT_EQ(bench.result.coverage.slow_to_fast_waits, 1u);
  EXPECT_EQ(OneWay(kTwoOnD, 16), 85'344 + 262'800 + 15 * 12'800 + 55'334);
}

TEST(ReferenceRouter, FastToSlowCutsThroughAndMovesToTheNextVc) {
  Bench bench({.supernodes = 1, .drawers = 2, .hubs = 2});
  bench.Via(0, 3, 1);  // LL to hub 1, LR to hub 3
  bench.Send(0, 0, 3, 4);
  bench.Run();
  // Handed over at 40; at hub 1 from 155 on; LR from 155 in steps of 30; at hub 3 at 292..382; the
  // HFI port starts at 382 - 3 x 10 and the tail leaves at 382.
  EXPECT_EQ(bench.result.nodes[1].grants.at(0).time, 155);
  EXPECT_EQ(bench.result.nodes[1].grants.at(0).output_vc, 1);
  EXPECT_EQ(bench.result.nodes[3].grants.at(0).time, 352);
  EXPECT_EQ(bench.Delivered(3), Times{382 + 110});
  EXPECT_EQ(bench.result.coverage.fast_to_slow, 1u);
  std::uint64_t path = 0;
  for (auto [node, port] : {std::pair(0, 0), {1, 7 + 1}, {3, 47}}) {
    path = Mix64(path ^ ((static_cast<std::uint64_t>(node) << 8 | port) + 1));
  }
  EXPECT_EQ(bench.result.nodes[3].deliveries[0].path, path);
  EXPECT_EQ(bench.Stats(3).hops_delivered, 2u);
}

TEST(ReferenceRouter, TwoPacketsContendInTurn) {
  Bench bench(kTwoOnLl);
  bench.Send(0, 0, 1, 2, /*from=*/0);
  bench.Send(0, 0, 1, 2, /*from=*/1);
  bench.Run();
  // W: port 47 starts at 0, port 48 at 6; in the ISR at 20 and 26. The link takes 20-40 and 40-60.
  ASSERT_EQ(bench.result.nodes[0].grants.size(), 2u);
  EXPECT_EQ(bench.result.nodes[0].grants[0].time, 20);
  EXPECT_EQ(bench.result.nodes[0].grants[1].time, 40);
  EXPECT_EQ(bench.Delivered(1), (Times{145 + 110, 165 + 110}));
  EXPECT_EQ(bench.Port(0, 1).credit_stall_ps, 0u);
}

TEST(ReferenceRouter, DepthOneSendsOneFlitPerCreditRoundTrip) {
  P7ihParameters p = RoundNumbers();
  p.ll.buffer_flits = 1;
  Bench bench(kTwoOnLl, p);
  bench.Send(0, 0, 1, 3);
  bench.Run();
  // Grant at 30; there at 145, gone at 155; credit back at 155 + 5 + 50 = 210; again 390.
  const auto& grants = bench.result.nodes[0].grants;
  ASSERT_EQ(grants.size(), 3u);
  EXPECT_EQ(grants[1].time, 210);
  EXPECT_EQ(grants[2].time, 390);
  EXPECT_EQ(bench.Delivered(1), Times{505 + 110});
  EXPECT_EQ(bench.Port(0, 1).credit_stall_ps, (210u - 40) + (390 - 220));
  EXPECT_EQ(bench.Port(0, 1).sum().runs(), 3u);
  EXPECT_EQ(bench.Port(0, 1).sum().runs_split, 2u);
  EXPECT_EQ(bench.result.coverage.buffer_full_starts, 1u);
}

TEST(ReferenceRouter, ARunCountsOnAnnouncedCreditsThatWillExistInTime) {
  P7ihParameters p = RoundNumbers();
  p.ll.buffer_flits = 4;
  Bench bench(kTwoOnLl, p);
  bench.Send(0, 0, 1, 4);
  bench.Send(0, 0, 1, 4);
  bench.Run();
  // Hand-overs end at 40 and 80. The first run 40-80 takes all credits; its flits leave hub 1 at
  // 165..195, credits exist at 220..250 and are announced together at 220: one run of four.
  const auto& grants = bench.result.nodes[0].grants;
  ASSERT_EQ(grants.size(), 2u);
  EXPECT_EQ(grants[1].time, 220);
  EXPECT_EQ(grants[1].flits, 4);
  EXPECT_EQ(bench.result.coverage.future_credits_used, 3u);
  EXPECT_EQ(bench.Port(0, 1).credit_stall_ps, 220u - 80);
}

TEST(ReferenceRouter, WLimitsInjection) {
  P7ihParameters p = RoundNumbers();
  p.w_flit_time = 25;
  Bench bench(kThree, p);
  bench.Send(0, 0, 1, 1, /*from=*/0);
  bench.Send(0, 0, 2, 1, /*from=*/1);
  bench.Run();
  EXPECT_EQ(bench.Delivered(1), Times{10 + 115 + 110});
  EXPECT_EQ(bench.Delivered(2), Times{25 + 10 + 115 + 110});
}

TEST(ReferenceRouter, WLimitsEjectionByPortOrder) {
  P7ihParameters p = RoundNumbers();
  p.w_flit_time = 10;
  Bench bench(kThree, p);
  bench.Send(0, 0, 2, 2, 0, /*to=*/1);
  bench.Send(0, 1, 2, 2, 0, /*to=*/0);
  bench.Run();
  // Both tails reach the HFI at 145 + 110; port 47 first, port 48 after 2 x 10.
  EXPECT_EQ(bench.Delivered(2), (Times{255, 275}));
  EXPECT_EQ(bench.result.nodes[2].deliveries[0].source, 1u);
}

TEST(ReferenceRouter, TheIsrQueueHoldsTwoPackets) {
  P7ihParameters p = RoundNumbers();
  p.ll.buffer_flits = 1;
  p.ll.flit_time = 100;
  Bench bench(kTwoOnLl, p);
  for (int i = 0; i < 4; ++i) bench.Send(0, 0, 1, 1);
  bench.Run();
  // Grants: 10, then one per credit round trip (205 there, 10 out, 55 back). The third packet may
  // be handed over when the first has left at 110, the fourth at 380.
  const auto& grants = bench.result.nodes[0].grants;
  ASSERT_EQ(grants.size(), 4u);
  EXPECT_EQ(grants[0].time, 10);
  EXPECT_EQ(grants[1].time, 10 + 205 + 10 + 55);
  EXPECT_EQ(grants[2].time, 10 + 2 * 270);
  EXPECT_EQ(grants[3].time, 10 + 3 * 270);
  EXPECT_GT(bench.result.coverage.isr_queue_full, 0u);
}

TEST(ReferenceRouter, ATailLostAfterItWasAnnouncedOnwardsIsPoisonedInPlace) {
  Bench bench(kThree);
  bench.Via(0, 2, 1);
  bench.Send(0, 0, 2, 4);
  bench.Fault(170, 0, 1, false);
  bench.Run();
  // At hub 1 the flits were due at 155..185 and the run onwards began at 155; two of them are lost.
  EXPECT_TRUE(bench.Delivered(2).empty());
  EXPECT_EQ(bench.Dropped(1, DropReason::kLinkDown), 2u);
  EXPECT_EQ(bench.Stats(1).packets_dropped[static_cast<int>(DropReason::kLinkDown)], 1u);
  EXPECT_EQ(bench.Stats(1).flits_synthesised, 2u);
  EXPECT_EQ(bench.Stats(1).packets_synthesised, 1u);
  EXPECT_EQ(bench.Dropped(2, DropReason::kTruncated), 4u);
  EXPECT_EQ(bench.result.coverage.poison_overtaken, 1u);
  EXPECT_EQ(bench.result.resident_packets, 0u);
}

TEST(ReferenceRouter, APacketCutInTheMiddleGetsOnePoisonTailAndItsRestIsDrained) {
  P7ihParameters p = RoundNumbers();
  p.ll.buffer_flits = 2;
  Bench bench(kThree, p);
  bench.Via(0, 2, 1);
  bench.Send(0, 0, 2, 4);
  bench.Fault(200, 0, 1, false);
  bench.Run();
  // Hub 0 sends two flits at 40, lacks credits from 60 until the link dies, drops two.
  EXPECT_EQ(bench.Port(0, 1).credit_stall_ps, 140u);
  EXPECT_EQ(bench.Dropped(0, DropReason::kLinkDown), 2u);
  EXPECT_EQ(bench.Stats(0).packets_dropped[static_cast<int>(DropReason::kLinkDown)], 1u);
  // Hub 1 is full at 165, sends both; the poison tail of 200 waits for the credit of 355.
  EXPECT_EQ(bench.Stats(1).flits_synthesised, 1u);
  EXPECT_EQ(bench.Port(1, 2).credit_stall_ps, 155u);
  EXPECT_EQ(bench.Port(1, 2).sum().flits, 3u);
  EXPECT_EQ(bench.Port(1, 2).sum().packets, 1u);
  EXPECT_EQ(bench.Dropped(2, DropReason::kTruncated), 3u);
  EXPECT_EQ(bench.result.end, 580 + 50);  // truncated at 580, its credits 50 later
}

TEST(ReferenceRouter, ALinkThatComesUpStartsWithTheGrantedCredits) {
  Bench bench(kTwoOnLl);
  bench.Fault(1000, 0, 1, false);
  bench.Fault(2000, 0, 1, true);
  bench.Send(1000, 0, 1, 1);  // routed when the link is down: dropped
  bench.Send(2000, 0, 1, 1);
  bench.Run();
  EXPECT_EQ(bench.Dropped(0, DropReason::kLinkDown), 1u);
  EXPECT_EQ(bench.Delivered(1), Times{2055 + 115 + 110});
  EXPECT_EQ(bench.Port(0, 1).credit_stall_ps, 45u);
}

TEST(ReferenceRouter, APacketOfTheHfiMeetsItsPortWhenItEntersTheIsr) {
  Bench bench(kTwoOnLl);
  bench.Fault(900, 0, 1, false);
  bench.Fault(1005, 0, 1, true);
  bench.Send(1000, 0, 1, 1);  // enters at 1010; the credits are there at 1005 + 5 + 50
  bench.Run();
  EXPECT_EQ(bench.Delivered(1), Times{1060 + 115 + 110});
}

TEST(ReferenceRouter, APacketPassesAnotherOneThatIsForASlowerOutput) {
  Bench bench({.supernodes = 1, .drawers = 2, .hubs = 2});
  bench.Via(0, 3, 1);
  bench.Send(0, 0, 3, 4);
  bench.Send(0, 0, 1, 1);
  bench.Run();
  // Both come to hub 1 on VC 0 of one link: the first from 155 on, leaving on LR at 185..275; the
  // second at 80 + 115, and goes to the HFI at once.
  EXPECT_EQ(bench.Delivered(1), Times{195 + 110});
}

TEST(ReferenceRouter, ASecondFailureBeforeThePoisonTailChangesNothing) {
  Bench bench(kTwoOnLl);
  bench.Send(0, 0, 1, 4);
  bench.Fault(160, 0, 1, false);  // flits at 155..185: three are lost, the tail among them
  bench.Fault(162, 0, 1, true);
  bench.Fault(170, 0, 1, false);
  bench.Run();
  EXPECT_EQ(bench.Stats(1).flits_synthesised, 3u);
  EXPECT_EQ(bench.Stats(1).packets_synthesised, 1u);
  EXPECT_EQ(bench.Dropped(1, DropReason::kLinkDown), 3u);
  EXPECT_EQ(bench.Dropped(1, DropReason::kTruncated), 4u);
  EXPECT_EQ(bench.result.coverage.down_again_before_poison, 1u);
}

TEST(ReferenceRouter, ALinkThatReturnsWhileItsSlotsArePromisedTwiceGrantsThemOnce) {
  P7ihParameters p = RoundNumbers();
  p.isr_latency = 1;
  p.ll = {10, 1, 8};
  p.hfi.flit_time = 20;
  p.credit_processing = 1;
  Bench bench(kTwoOnLl, p);
  bench.Send(0, 0, 1, 8, /*from=*/0);
  bench.Send(0, 0, 1, 8, /*from=*/1);
  bench.Fault(253, 0, 1, false);
  bench.Fault(254, 0, 1, true);
  bench.Run();
  // The first packet leaves hub 1 at 192, 212, ..; at 240 hub 0 counts on 194, 214, .. 274 and
  // sends five flits, announced at 252. Then four flits are still leaving: nine for eight slots.
  EXPECT_EQ(bench.result.coverage.slots_promised_twice, 1u);
  EXPECT_EQ(bench.result.credits_wrong, 0u);
}

TEST(ReferenceRouter, APacketOutOfPositionsOrWithoutARouteIsDropped) {
  Bench bench(kFour);
  bench.Via(0, 3, 1);
  bench.Via(1, 3, 2);
  bench.Via(2, 3, 0);
  bench.routes[1].intra[2] = 0;
  bench.Send(0, 0, 3, 2);  // L0, L1, L2 and back at hub 0
  bench.Via(0, 2, 1);
  bench.Send(500, 0, 2, 1);   // a hole at hub 1
  bench.Send(1000, 1, 2, 3);  // ... and at its source
  bench.Run();
  EXPECT_EQ(bench.Dropped(0, DropReason::kNoVcPosition), 2u);
  EXPECT_EQ(bench.Dropped(1, DropReason::kNoRoute), 1u + 3u);
  EXPECT_EQ(bench.result.coverage.no_route, 2u);
}

TEST(ReferenceRouter, ParallelLinksAreTakenInTurn) {
  Bench bench(kTwoOnD);
  for (int i = 0; i < 3; ++i) bench.Send(i * 100, 0, 1, 1);
  bench.Run();
  const auto& grants = bench.result.nodes[0].grants;
  ASSERT_EQ(grants.size(), 3u);
  EXPECT_EQ(grants[0].output, 31);
  EXPECT_EQ(grants[1].output, 32);
  EXPECT_EQ(grants[2].output, 31);
}

TEST(ReferenceRouter, NewTablesApplyToPacketsRoutedFromThenOn) {
  Bench bench(kThree);
  bench.Send(0, 0, 2, 1);
  bench.Send(99, 0, 2, 1);
  bench.Send(100, 0, 2, 1);
  bench.Run();
  TableSwitch before = bench.input.tables[0];
  bench.Via(0, 2, 1);
  bench.Run();
  bench.input.tables = {before, {100, bench.input.tables[0].tables}};
  const ReferenceResult result = RunReference(bench.input);
  EXPECT_EQ(result.nodes[0].stats.ports[bench.topology.LPort(0, 2)].sum().packets, 2u);
  EXPECT_EQ(result.nodes[0].stats.ports[bench.topology.LPort(0, 1)].sum().packets, 1u);
}

TEST(ReferenceRouter, PacketsOfTwoVcsInterleaveOnOneLink) {
  P7ihParameters p = RoundNumbers();
  p.ll.buffer_flits = 1;
  Bench bench(kFour, p);
  bench.Via(3, 2, 1);
  bench.Send(0, 3, 2, 4);   // on 1 -> 2 in VC 1
  bench.Send(60, 1, 2, 4);  // on 1 -> 2 in VC 0
  bench.Run();
  EXPECT_GT(bench.result.coverage.vc_interleaves, 0u);
  EXPECT_EQ(bench.Delivered(2).size(), 2u);
}

}  // namespace
}  // namespace percs::reference
