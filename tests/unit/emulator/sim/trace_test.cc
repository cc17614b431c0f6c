// Method: small scripts whose every time can be reckoned by hand; the records of all placements put
// together must be the same.
#include <gtest/gtest.h>

#include "emulator/packet/packet_bytes.h"
#include "emulator/scenario/link_settings.h"
#include "emulator/sim/run.h"
#include "emulator/sim/traced_packet.h"
#include "gmock/gmock.h"
#include "tests/support/executors.h"

namespace percs {
namespace {

Scenario Script(TopologySpec topology, std::vector<ScriptedPacket> packets) {
  Scenario s;
  s.topology = topology;
  s.parameters.ll = {1000, 500, 32};
  s.parameters.lr = {4000, 2000, 32};
  s.parameters.hfi = {500, 0, 64};
  s.parameters.w_flit_time = 250;
  s.parameters.isr_latency = 10'000;
  s.parameters.credit_processing = 10'000;
  s.workload = ScriptedWorkload{std::move(packets)};
  return s;
}

TraceSelection Packets(NodeId source, std::uint64_t count = 1, std::uint64_t first = 1,
                       std::uint64_t every = 1) {
  TraceSelection selection;
  selection.source = source;
  selection.first = first;
  selection.every = every;
  selection.count = count;
  return selection;
}

std::vector<TracedPacket> Follow(const Scenario& s, const TraceSelection& selection,
                                 int threads = 1) {
  std::vector<TraceEvent> events;
  RunOptions options;
  options.threads = threads;
  options.executor = threads > 1 ? &test::kThreads : nullptr;
  options.trace = selection;
  options.traced = &events;
  EXPECT_TRUE(RunScenario(s, options).ok());
  return MergeTrace(s.parameters, events);
}

Time Waited(const TracedHop& hop, Wait wait) {
  Time sum = 0;
  for (const TracedGrant& g : hop.grants) sum += g.waited[static_cast<std::size_t>(wait)];
  return sum;
}

TEST(Trace, OnePacketAloneWaitsForNothing) {
  const auto packets = Follow(Script({1, 1, 2}, {{7000, 0, 1, 0, 0, 512}}), Packets(0));
  ASSERT_EQ(packets.size(), 1u);
  const TracedPacket& p = packets[0];
  EXPECT_EQ(p.created, 7000);
  EXPECT_EQ(p.hfi_wait, 0);
  ASSERT_EQ(p.hops.size(), 2u);
  EXPECT_EQ(p.hops[0].arrived, 7000 + 4 * 500);
  ASSERT_EQ(p.hops[0].grants.size(), 1u);
  EXPECT_EQ(p.hops[0].grants[0].at, 9000);
  EXPECT_EQ(p.hops[0].grants[0].until, 9000 + 4 * 1000);
  EXPECT_EQ(p.hops[1].arrived, 9000 + 10'000 + 1000 + 500);
  // The HFI's port is twice as fast as the link: it begins when no underrun is certain.
  EXPECT_EQ(p.hops[1].grants[0].waited[static_cast<std::size_t>(Wait::kSerialisation)], 3 * 500);
  ASSERT_EQ(p.deliveries.size(), 1u);
  EXPECT_EQ(p.deliveries[0].second, 1u);
}

TEST(Trace, ALinkThatIsBusyIsArbitrationAndALinkWithoutCreditsIsCredit) {
  // Two packets from two windows on different HFI ports, for one LL link.
  Scenario s = Script({1, 1, 2}, {{0, 0, 1, 0, 0, 2048}, {0, 0, 1, 1, 1, 2048}});
  auto packets = Follow(s, Packets(0, 2));
  ASSERT_EQ(packets.size(), 2u);
  EXPECT_EQ(Waited(packets[0].hops[0], Wait::kArbitration), 0);
  // Its own 16 flits came in 4 us after the first one's; that one sends for 16 us.
  EXPECT_EQ(Waited(packets[1].hops[0], Wait::kArbitration), 16'000 - 4000);
  EXPECT_EQ(Waited(packets[1].hops[0], Wait::kCredit), 0);
  s.parameters.ll.buffer_flits = 4;
  packets = Follow(s, Packets(0));
  ASSERT_EQ(packets.size(), 1u);
  EXPECT_GT(packets[0].hops[0].grants.size(), 1u);
  EXPECT_GT(Waited(packets[0].hops[0], Wait::kCredit), 0);
}

TEST(Trace, SelectsByEndsNumberAndStride) {
  std::vector<ScriptedPacket> script;
  for (int i = 0; i < 20; ++i) {
    script.push_back({i * 100'000, 0, static_cast<NodeId>(1 + i % 2), 0, 0, 128});
  }
  TraceSelection selection = Packets(0, 2, 2, 3);
  selection.destination = 2;
  const auto packets = Follow(Script({1, 1, 3}, script), selection);
  std::vector<std::uint64_t> sequences;
  for (const TracedPacket& p : packets) sequences.push_back(p.sequence);
  EXPECT_THAT(sequences, testing::ElementsAre(4, 10));  // of 2, 4, 6, 8, 10, ... to hub 2
}

TEST(Trace, TellsOfDrops) {
  Scenario s = Script({1, 1, 2}, {{0, 0, 1, 0, 0, 2048}});
  s.reroute = false;
  s.faults = {SetLinkDown(15'000, {0, 0})};
  const auto packets = Follow(s, {});
  ASSERT_EQ(packets.size(), 1u);
  EXPECT_TRUE(packets[0].deliveries.empty());
  ASSERT_FALSE(packets[0].drops.empty());
  EXPECT_EQ(packets[0].drops[0].reason, DropReason::kLinkDown);
}

// Pings between drawers, beside traffic that shares their links.
Scenario Pinged() {
  Scenario s;
  s.topology = {1, 2, 2};
  s.workload = AllToAllWorkload{.bytes = 8000};
  s.service.pings = {{0, 3, 0, 20, 100 * kNanosecond}};
  return s;
}

TEST(Trace, FollowsManagementPacketsOnlyWhenAskedAndExplainsTheirWaits) {
  TraceSelection selection = Packets(kNoNode, 100);
  for (const TracedPacket& p : Follow(Pinged(), selection)) EXPECT_LT(p.sequence, 1u << 30);
  selection.kinds = KindBit(PacketKind::kService);
  const auto packets = Follow(Pinged(), selection);
  Time waited = 0;
  std::size_t delivered = 0;
  for (const TracedPacket& p : packets) {
    ASSERT_EQ(p.deliveries.size() + p.drops.size(), 1u);
    if (p.deliveries.empty()) continue;  // the port had no room: it is asked again
    ++delivered;
    ASSERT_GE(p.hops.size(), 2u);
    EXPECT_EQ(p.hops.front().in.port, kServicePort);
    EXPECT_EQ(p.hops.back().out.port, kServicePort);
    for (const TracedHop& hop : p.hops) {
      ASSERT_EQ(hop.grants.size(), 1u);
      EXPECT_EQ(hop.out_vc, kServiceVc);
      Time sum = 0;
      for (const Time t : hop.grants[0].waited) sum += t;
      EXPECT_EQ(sum, hop.grants[0].at - hop.arrived);
      waited += sum;
    }
  }
  EXPECT_EQ(delivered, 40u);  // requests and answers
  EXPECT_GT(waited, 0);
}

TEST(Trace, OfManagementPacketsChangesNothing) {
  std::vector<TraceEvent> events;
  RunOptions options;
  options.trace = Packets(kNoNode, 100);
  options.trace->kinds = kEveryKind;
  options.trace->content = true;
  options.traced = &events;
  EXPECT_EQ(RunScenario(Pinged(), options)->digest, RunScenario(Pinged(), {})->digest);
  EXPECT_FALSE(events.empty());
}

TEST(Trace, SelectsByTheTimeAtWhichAPacketWasCreated) {
  std::vector<ScriptedPacket> script;
  for (int i = 0; i < 20; ++i) script.push_back({i * 100'000, 0, 1, 0, 0, 128});
  TraceSelection selection = Packets(0, 2);
  selection.since = 300'000;
  std::vector<Time> created;
  for (const TracedPacket& p : Follow(Script({1, 1, 2}, script), selection))
    created.push_back(p.created);
  EXPECT_THAT(created, testing::ElementsAre(300'000, 400'000));
  selection.until = 400'000;
  EXPECT_EQ(Follow(Script({1, 1, 2}, script), selection).size(), 1u);
}

TEST(Trace, KeepsHeaderAndPayloadWhereAsked) {
  Scenario s;
  s.topology = {1, 1, 2};
  s.workload = AllToAllWorkload{.bytes = 3000};
  TraceSelection selection = Packets(1, 2);
  for (const TracedPacket& p : Follow(s, selection)) EXPECT_EQ(p.content, "");
  selection.content = true;
  const auto packets = Follow(s, selection);
  ASSERT_EQ(packets.size(), 2u);
  EXPECT_EQ(packets[0].content.size(), kPacketHeaderBytes + 2048);
  const std::string& last = packets[1].content;
  ASSERT_EQ(last.size(), kPacketHeaderBytes + 952);
  EXPECT_EQ(last[0], static_cast<char>(PacketKind::kData));
  EXPECT_EQ(last.substr(4, 8), std::string("\1\0\0\0\0\0\0\0", 8));     // from hub 1 to hub 0
  EXPECT_EQ(last.substr(16, 2), "\xb8\x03");                            // 952 bytes
  EXPECT_EQ(last.substr(64, 8), std::string("\0\x08\0\0\0\0\0\0", 8));  // at 2,048
}

TEST(Trace, IsTheSameForAnyNumberOfThreads) {
  Scenario s;
  s.topology = {2, 2, 3, 2};
  s.workload = AllToAllWorkload{.bytes = 8000};
  const TraceSelection every_third = Packets(kNoNode, 20, 1, 3);
  const auto one = Follow(s, every_third);
  const auto three = Follow(s, every_third, 3);
  ASSERT_EQ(one.size(), three.size());
  ASSERT_GT(one.size(), 100u);
  for (std::size_t i = 0; i < one.size(); ++i) {
    EXPECT_EQ(one[i].sequence, three[i].sequence);
    EXPECT_EQ(one[i].deliveries, three[i].deliveries);
    ASSERT_EQ(one[i].hops.size(), three[i].hops.size());
    for (std::size_t h = 0; h < one[i].hops.size(); ++h) {
      EXPECT_EQ(one[i].hops[h].arrived, three[i].hops[h].arrived);
      ASSERT_EQ(one[i].hops[h].grants.size(), three[i].hops[h].grants.size());
      EXPECT_EQ(one[i].hops[h].grants[0].waited, three[i].hops[h].grants[0].waited);
    }
  }
}

}  // namespace
}  // namespace percs
