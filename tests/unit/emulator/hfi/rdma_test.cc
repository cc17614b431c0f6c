// Method: RDMA, atomics, fences and datagrams one at a time on a drawer or two supernodes, with the
// bytes compared and the order of what happened looked at; what cannot be done ends with its own
// reason.
#include <gtest/gtest.h>

#include "emulator/scenario/link_settings.h"
#include "tests/support/window_runs.h"
#include "tests/unit/emulator/hfi/window_script.h"

namespace percs {
namespace {

using test::Bytes;
using test::Counted;
using test::kMemory;
using test::Machine;
using test::Pattern;
using test::PlayPrograms;
using test::Script;

TEST(RdmaTest, WritesAndReadsMoveBytesOfEverySize) {
  Script a(0, 1), b(1, 1);
  a.Open(0, 1 << 20).At(kLater);
  b.Open(3, 1 << 20).At(kLater);
  const std::uint64_t sizes[] = {1, 7, 128, 2047, 2048, 2049, 65536, 300000};
  Address at = 5;  // nothing is aligned
  for (const std::uint64_t size : sizes) {
    const Bytes data = Pattern(size, size);
    a.Write(kMemory + at, data);
    a.Put(1, 3, kMemory + at, kMemory + 3 * at, size);
    // What is there by the completion comes back by a read.
    a.Get(1, 3, kMemory + 3 * at, kMemory + 500000, size);
    a.Expect(kMemory + 500000, data);
    at = 3 * at + size % 1000;
    if (3 * at + 300000 > 1 << 20) at = 11;
  }
  const RunResult result = PlayPrograms(Machine(Drawer(), {a, b}));
  std::uint64_t sum = 0;
  for (const std::uint64_t size : sizes) sum += size;
  EXPECT_EQ(Counted(result, HfiCounter::kRdmaBytesWritten), sum);
  EXPECT_EQ(Counted(result, HfiCounter::kRdmaBytesRead), sum);
}

TEST(RdmaTest, FifosAreEndsOfRdmaToo) {
  Script a(0, 1), b(1, 1);
  a.Open(0, 65536).At(kLater);
  b.Open(0, 65536);
  const Bytes one = Pattern(1000, 1), two = Pattern(2048 * 3, 2);
  // From the send FIFO to memory, with a notification.
  WindowStep& staged = a.Put(1, 0, 0, kMemory, 0);
  staged.operation.data = one;
  staged.operation.notify = true;
  b.AwaitNotified();
  b.Expect(kMemory, one);
  // From memory to the other's FIFO.
  a.Write(kMemory, two);
  WindowStep& pushed = a.Put(1, 0, kMemory, 0, two.size());
  pushed.operation.to_fifo = true;
  b.AwaitReceived(3);
  // From the other's memory to the own FIFO.
  WindowStep& pulled = a.Get(1, 0, kMemory, 0, 1000);
  pulled.operation.to_fifo = true;
  a.AwaitReceived(1).expect_data = one;
  // A FIFO of 16 slots has no room for 17 packets.
  WindowStep& many = a.Put(1, 0, kMemory, 0, 17 * 2048);
  many.operation.to_fifo = true;
  many.expect = Status::kReceiveFifoFull;
  b.AwaitReceived(16);
  PlayPrograms(Machine(Drawer(), {a, b}));
}

TEST(RdmaTest, WhatTheTargetRefusesHasItsReason) {
  Script a(0, 1), b(1, 1), c(1, 2, "another job");
  a.Open(0, 65536).At(kLater);
  b.Open(0, 4096);
  b.Register(kMemory + 8192, 4096, 0, false);
  c.Open(1, 4096, 1);
  b.At(8 * kLater);
  b.Expect(kMemory, Bytes(4096));
  c.At(8 * kLater);
  c.Expect(kMemory, Bytes(4096), 1);
  const auto both = [&a](NodeId node, WindowId window, Address address, std::uint64_t bytes,
                         ContextId context, Status write, Status read) {
    a.Put(node, window, kMemory, address, bytes, context).expect = write;
    a.Get(node, window, address, kMemory, bytes, context).expect = read;
    a.Update(node, window, {{AtomicOp::kAdd, 8, true, address & ~Address{7}, 1}}, context).expect =
        write == Status::kOutOfRange ? Status::kNotRegistered : write;
  };
  both(1, 0, kMemory + 4096, 8, 0, Status::kNotRegistered, Status::kNotRegistered);
  both(1, 0, kMemory, 8, 9, Status::kNotRegistered, Status::kNotRegistered);
  both(1, 0, kMemory + 8192, 8, 0, Status::kReadOnly, Status::kOk);
  both(1, 0, kMemory, 8, 1, Status::kWrongKey, Status::kWrongKey);  // the memory of job 2
  both(1, 1, kMemory, 8, 0, Status::kWrongKey, Status::kWrongKey);  // its window
  both(1, 2, kMemory, 8, 0, Status::kRemoteWindowClosed, Status::kRemoteWindowClosed);
  a.Put(1, 0, kMemory, kMemory + 4000, 97).expect = Status::kOutOfRange;
  a.Get(1, 0, kMemory + 4000, kMemory, 97).expect = Status::kOutOfRange;
  // Here.
  a.Put(1, 0, kMemory + 65530, kMemory, 8).expect = Status::kOutOfRange;
  a.Put(1, 0, 3, kMemory, 8).expect = Status::kNotRegistered;
  a.Get(1, 0, kMemory, 3, 8).expect = Status::kNotRegistered;
  a.Put(1, 0, kMemory, kMemory, 0).expect = Status::kEmpty;
  a.Put(1, 0, kMemory, kMemory, 1ull << 33).expect = Status::kTooLarge;
  a.Put(7, 0, kMemory, kMemory, 8).expect = Status::kNoSuchNode;
  a.Update(1, 0, {}).expect = Status::kEmpty;
  a.Update(1, 0, {{AtomicOp::kAdd, 8, false, kMemory + 4, 1}}).expect = Status::kUnaligned;
  a.Update(1, 0, {{AtomicOp::kAdd, 3, false, kMemory, 1}}).expect = Status::kBadSize;
  a.Update(1, 0, {{AtomicOp::kAdd, 16, false, kMemory, 1}}).expect = Status::kBadSize;
  a.Update(1, 0, std::vector<AtomicUpdate>(5, {AtomicOp::kAdd, 8, false, kMemory, 1})).expect =
      Status::kBadSize;
  // One bad update, and nothing of its group is done.
  a.Update(1, 0,
           {{AtomicOp::kAdd, 8, false, kMemory, 1}, {AtomicOp::kAdd, 8, false, kMemory + 8192, 1}})
      .expect = Status::kReadOnly;
  const RunResult result = PlayPrograms(Machine(Drawer(), {a, b, c}));
  EXPECT_EQ(Counted(result, HfiCounter::kAtomics), 0u);
  EXPECT_GT(Counted(result, HfiCounter::kFaults), 10u);
}

TEST(RdmaTest, DeregisteredMemoryRefusesWhatIsUnderWay) {
  Script a(0, 1), b(1, 1);
  a.Open(0, 1 << 20).At(kLater);
  b.Open(0, 1 << 20).At(kLater + 10 * kMicrosecond);
  a.Put(1, 0, kMemory, kMemory, 1 << 20).expect = Status::kNotRegistered;
  WindowOperation deregister;
  deregister.op = WindowOp::kDeregister;
  deregister.address = kMemory;
  b.Do(deregister);
  PlayPrograms(Machine(Drawer(), {a, b}));
}

TEST(RdmaTest, AnUnreachableHubIsAReasonToo) {
  Script a(0, 1), b(1, 1);
  a.Open(0, 4096).At(kLater);
  b.Open(0, 4096);
  a.Put(1, 0, kMemory, kMemory, 100).expect = Status::kUnreachable;
  a.Get(1, 0, kMemory, kMemory, 100).expect = Status::kNoRoute;
  a.Send(WindowOp::kImmediateSend, 1, 0, {}).expect = Status::kNoRoute;
  Scenario scenario = Machine({1, 1, 2, 1}, {a, b});
  // The only link: down before what was sent gets there. Network management then has no route.
  scenario.faults = {SetLinkDown(kLater + 700 * kNanosecond, {0, 0})};
  scenario.reroute = true;
  const auto result = RunScenario(scenario, {});
  ASSERT_TRUE(result.ok()) << result.status();
  // By the last try there was no route any more, so the first may say either.
  EXPECT_LE(result->window_programs[0].wrong, 1u) << result->window_programs[0].problem;
  EXPECT_TRUE(result->window_programs[0].ended);
}

TEST(RdmaTest, AWriteFenceWaitsForWritesAndAReadFenceForReads) {
  // 64 KB each way take microseconds; the immediate send behind a fence shows when it ended.
  const auto time = [](bool writes, bool reads, bool put) {
    Script a(0, 1), b(1, 1);
    a.Open(0, 1 << 20).At(kLater);
    b.Open(0, 1 << 20);
    a.Mark();
    WindowStep& big =
        put ? a.Put(1, 0, kMemory, kMemory, 1 << 17) : a.Get(1, 0, kMemory, kMemory, 1 << 17);
    big.wait = false;
    if (writes || reads) a.Fence(writes, reads).wait = false;
    a.Send(WindowOp::kImmediateSend, 1, 0, {});
    a.Mark();
    a.AwaitAll();
    a.Mark();
    const RunResult result = PlayPrograms(Machine(Drawer(), {a, b}));
    const auto& marks = result.window_programs[0].marks;
    return std::pair(marks[1] - marks[0], marks[2] - marks[0]);
  };
  for (const bool put : {true, false}) {
    const auto [held, all] = time(put, !put, put);
    // The program hears of the end of a read `receive` after the HFI knows of it.
    EXPECT_GE(held + WindowParameters().receive, all) << "the fence of its kind";
    const auto [other, all_other] = time(!put, put, put);
    EXPECT_LT(other, all_other) << "a fence of the other kind holds nothing";
    const auto [none, all_none] = time(false, false, put);
    EXPECT_LT(none, all_none);
  }
}

TEST(RdmaTest, OperationsOvertakeWithoutAFenceAndNotWithOne) {
  // Two supernodes with two D links between them, of which one is slow: striped packets overtake.
  const auto last_value = [](bool fence, int rounds) {
    Script a(0, 1), b(5, 1);
    a.Open(0, 1 << 16).At(kLater);
    b.Open(0, 1 << 16);
    for (int i = 1; i <= rounds; ++i) {
      a.Write(kMemory + 8 * i, Bytes{static_cast<std::uint8_t>(i)});
      WindowStep& first = a.Put(5, 0, kMemory + 8 * i, kMemory, 1);
      first.wait = false;
      if (fence) a.Fence(true, false).wait = false;
    }
    a.AwaitAll();
    // Which write came last?
    a.Get(5, 0, kMemory, kMemory, 1);
    WindowStep& value = a.Update(5, 0, {{AtomicOp::kOr, 1, true, kMemory, 0}});
    value.keep_values = true;
    Scenario scenario = Machine({2, 1, 4, 2}, {a, b});
    scenario.routing.rdma.mode = RouteMode::kHwDirectStriped;
    const Topology topology = *Topology::Create(scenario.topology);
    // One D link of the pair is longer by two microseconds.
    for (const LinkEnd& end : topology.Links()) {
      if (topology.ClassOfLink(end) == LinkClass::kD) {
        scenario.cables.push_back({end, 2 * kMicrosecond});
        break;
      }
    }
    const RunResult result = PlayPrograms(scenario);
    return static_cast<int>(result.window_programs[0].values.at(0));
  };
  EXPECT_EQ(last_value(true, 7), 7);
  EXPECT_EQ(last_value(true, 8), 8);
  // Of the last two writes one takes the long way.
  EXPECT_TRUE(last_value(false, 7) != 7 || last_value(false, 8) != 8);
}

// Else a packet that has come at last would be sent once more, because no later one covers it.
TEST(RdmaTest, APacketThatFillsTheLastHoleIsAcknowledgedAtOnce) {
  Script a(0, 1), b(1, 1);
  a.Open(0, 65536).At(kLater);
  b.Open(0, 65536);
  const Bytes data = Pattern(3 * 2048, 1);
  a.Write(kMemory, data);
  a.Put(1, 0, kMemory, kMemory, data.size());
  b.At(kMillisecond);
  b.Expect(kMemory, data);
  Scenario scenario = Machine({1, 1, 2, 1}, {a, b});
  scenario.parameters.link_replay = false;
  // The first of the three packets is lost: without replay a corrupted flit costs its packet.
  scenario.faults = {SetCorruptNext(kLater, {0, 0}, 1)};
  const RunResult result = PlayPrograms(scenario);
  EXPECT_EQ(Dropped(result, DropReason::kCrc), 1u);
  EXPECT_EQ(result.total.packets_resent, 1u);
  EXPECT_EQ(Dropped(result, DropReason::kDuplicate), 0u);
  // Of the last packet, of the first one when it comes at last, and of the answer.
  EXPECT_EQ(result.total.acks_sent, 3u);
}

// Of units of one packet: the next request leaves when an earlier one's bytes are stored.
TEST(RdmaTest, AReadHasSoManyRequestsInFlight) {
  const auto time = [](int read_units) {
    Script a(0, 1), b(1, 1);
    a.Open(0, 65536).At(kLater);
    b.Open(0, 65536);
    a.Get(1, 0, kMemory, kMemory, 8);  // all pages are translated once
    a.Mark();
    a.Get(1, 0, kMemory, kMemory, 2 * 2048);
    a.Mark();
    Scenario scenario = Machine({1, 1, 2, 1}, {a, b});
    scenario.parameters.windows.read_unit_packets = 1;
    scenario.parameters.windows.read_units = read_units;
    const auto marks = PlayPrograms(scenario).window_programs[0].marks;
    return marks[1] - marks[0];
  };
  const P7ihParameters p;
  const WindowParameters& w = p.windows;
  const Time link = p.hfi.flit_time + p.isr_latency + p.ll.flit_time + p.ll.wire + p.isr_latency +
                    p.hfi.flit_time;
  const Time unit = link + w.nmmu_hit + w.memory_read + link + 2 * 15 * p.hfi.flit_time +
                    w.nmmu_hit + w.memory_write;
  EXPECT_EQ(time(1), w.rdma_issue + 2 * unit + w.receive);
  // The second packet is behind the first in the other hub's HFI port.
  EXPECT_EQ(time(2), w.rdma_issue + unit + 16 * p.hfi.flit_time + w.receive);
}

TEST(RdmaTest, AWindowHasSoManyOperationsUnderWay) {
  Script a(0, 1), b(1, 1);
  a.Open(0, 65536).At(kLater);
  b.Open(0, 65536);
  Scenario scenario = Machine(Drawer(), {});
  scenario.parameters.windows.operations = 4;
  for (int i = 0; i < 4; ++i) a.Put(1, 0, kMemory, kMemory, 8).wait = false;
  WindowStep& more = a.Put(1, 0, kMemory, kMemory, 8);
  more.wait = false;
  more.expect = Status::kTooManyOperations;
  a.AwaitAll();
  a.Put(1, 0, kMemory, kMemory, 8);
  std::get<WindowWorkload>(scenario.workload).programs = {a.program(), b.program()};
  PlayPrograms(scenario);
}

TEST(RdmaTest, DatagramsAreGatheredAndScattered) {
  Script a(0, 1), b(1, 1);
  a.Open(0, 1 << 17).At(kLater);
  b.Open(0, 1 << 17);
  const Bytes data = Pattern(65535, 4);
  a.Write(kMemory, Bytes(data.begin(), data.begin() + 1000));
  a.Write(kMemory + 5000, Bytes(data.begin() + 1000, data.end()));
  const auto post = [](Script& script, std::vector<MemorySegment> segments) -> WindowStep& {
    WindowStep& step = script.Do({});
    step.operation.op = WindowOp::kIpReceive;
    step.operation.segments = std::move(segments);
    return step;
  };
  post(b, {{0, kMemory + 9, 3}, {0, kMemory + 100, 65000}, {0, kMemory + 80000, 532}}).wait = false;
  post(b, {}).expect = Status::kEmpty;
  post(b, {{0, kMemory, 40000}, {0, kMemory, 40000}}).expect = Status::kTooLarge;
  post(b, {{0, 1, 40}}).expect = Status::kNotRegistered;
  const auto send = [&a](std::vector<MemorySegment> segments) -> WindowStep& {
    WindowStep& step = a.Send(WindowOp::kIpSend, 1, 0, {});
    step.operation.segments = std::move(segments);
    return step;
  };
  send({{0, kMemory, 1000}, {0, kMemory + 5000, 64535}});
  // Nobody has given a place for the next one.
  send({{0, kMemory, 3000}});
  send({{0, kMemory, 3000}, {0, 0, 1}}).expect = Status::kNotRegistered;
  b.AwaitAll();
  b.Expect(kMemory + 9, Bytes(data.begin(), data.begin() + 3));
  b.Expect(kMemory + 100, Bytes(data.begin() + 3, data.begin() + 65003));
  b.Expect(kMemory + 80000, Bytes(data.begin() + 65003, data.end()));
  const RunResult result = PlayPrograms(Machine(Drawer(), {a, b}));
  EXPECT_EQ(Counted(result, HfiCounter::kDatagrams), 1u);
  EXPECT_EQ(Dropped(result, DropReason::kNoIpReceive), 2u);
}

// The run goes on until it is known that the rest does not come, and the next datagram gets the
// place.
TEST(RdmaTest, ADatagramThatLacksAPartIsLostAsAWhole) {
  const auto counted = [](bool another) {
    Script a(0, 1), b(1, 1);
    a.Open(0, 65536).At(kLater);
    b.Open(0, 65536);
    WindowStep& place = b.Do({});
    place.operation.op = WindowOp::kIpReceive;
    place.operation.segments = {{0, kMemory, 20000}};
    place.wait = false;
    const auto send = [&a] {
      WindowStep& step = a.Send(WindowOp::kIpSend, 1, 0, {});
      step.operation.segments = {{0, kMemory, 20000}};
    };
    send();
    if (another) {
      a.At(kLater + P7ihParameters().windows.reassembly + kLater);
      send();
    }
    Scenario scenario = Machine(Drawer(), {a, b});
    scenario.parameters.link_replay = false;
    const Topology topology = *Topology::Create(scenario.topology);
    LinkEnd sender = *topology.ParseLink("sn0-d0-h0/sn0-d0-h1");
    if (sender.node != 0) sender = topology.Peer(sender.node, sender.port);
    // The second packet, or one of the next.
    scenario.faults.push_back(SetCorruptNext(kLater + kMicrosecond, sender, 1));
    return PlayPrograms(scenario);
  };
  const RunResult lost = counted(false);
  EXPECT_EQ(Counted(lost, HfiCounter::kDatagramsLost), 1u);
  EXPECT_EQ(Counted(lost, HfiCounter::kDatagrams), 0u);
  EXPECT_GE(lost.virtual_time, P7ihParameters().windows.reassembly);
  const RunResult next = counted(true);
  EXPECT_EQ(Counted(next, HfiCounter::kDatagramsLost), 1u);
  EXPECT_EQ(Counted(next, HfiCounter::kDatagrams), 1u);
}

TEST(RdmaTest, AMulticastDatagramReachesWhoeverJoined) {
  TopologySpec spec = Drawer();
  spec.multicast = {{"group", "sn0-d0-h0", {"sn0-d0-h1", "sn0-d0-h2", "sn0-d0-h3"}}};
  const NodeId group = 4;
  ASSERT_TRUE(Topology::Create(spec)->is_group(group));
  Script a(0, 1);
  a.Open(0, 0).At(kLater);
  std::vector<Script> all = {};
  const Bytes data = Pattern(700, 3);
  a.Send(WindowOp::kIpSend, group, 9, data);
  all.push_back(a);
  for (NodeId node = 1; node <= 3; ++node) {
    for (WindowId window = 0; window < 2; ++window) {
      Script member(node, 1, "of a member");
      member.Reserve(window);
      member.Fifos(2, 2, window);
      WindowStep& join = member.Do({});
      join.operation.op = WindowOp::kJoin;
      join.operation.node = group;
      // On node 3 nobody joins at last.
      if (node < 3) member.AwaitReceived().expect_data = data;
      if (node == 3) member.Do(join.operation).operation.op = WindowOp::kLeave;
      member.Send(WindowOp::kIpSend, group, 9, data).expect = Status::kNoRoute;
      all.push_back(member);
    }
  }
  const RunResult result = PlayPrograms(Machine(spec, all));
  EXPECT_EQ(Dropped(result, DropReason::kWindowClosed), 1u);
  EXPECT_EQ(Counted(result, HfiCounter::kReceived), 4u);
}

}  // namespace
}  // namespace percs
