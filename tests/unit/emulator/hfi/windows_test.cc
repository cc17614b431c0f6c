// Method: programs of windows on a drawer of four hubs; what they get is compared with what was
// sent, and each thing that cannot be done ends with its own reason.
#include <gtest/gtest.h>

#include <memory>

#include "emulator/workload/hub_workload.h"
#include "tests/support/window_runs.h"
#include "tests/unit/emulator/hfi/window_script.h"

namespace percs {
namespace {

using test::Bytes;
using test::Counted;
using test::kFifos;
using test::kMemory;
using test::Machine;
using test::Pattern;
using test::PlayPrograms;
using test::Script;

TEST(WindowsTest, EveryPacketFormatBringsItsBytes) {
  Script a(0, 7), b(3, 7);
  a.Open(5, 0).At(kLater);
  b.Open(9, 0);
  const std::pair<WindowOp, std::size_t> formats[] = {
      {WindowOp::kImmediateSend, 127}, {WindowOp::kImmediateSend, 1}, {WindowOp::kImmediateSend, 0},
      {WindowOp::kFifoSend, 2048},     {WindowOp::kFifoSend, 129},    {WindowOp::kFifoSend, 0},
      {WindowOp::kIpSend, 2048},       {WindowOp::kIpSend, 40}};
  std::uint64_t seed = 0;
  for (const auto& [format, size] : formats) {
    const Bytes data = Pattern(size, ++seed);
    a.Send(format, 3, 9, data);
    b.AwaitReceived().expect_data = data;
    // And back, so that one comes after the other.
    b.Send(WindowOp::kImmediateSend, 0, 5, {});
    a.AwaitReceived();
  }
  const RunResult result = PlayPrograms(Machine(Drawer(), {a, b}));
  EXPECT_EQ(Counted(result, HfiCounter::kSent), 16u);
  EXPECT_EQ(Counted(result, HfiCounter::kReceived), 16u);
  EXPECT_EQ(Counted(result, HfiCounter::kReceiveIndicated), 16u);
  EXPECT_EQ(Counted(result, HfiCounter::kSendIndicated), 16u);
  EXPECT_EQ(Counted(result, HfiCounter::kImmediateSent), 11u);
}

TEST(WindowsTest, ReservationsRunOutAndComeBack) {
  Script a(0, 1);
  Scenario scenario = Machine(Drawer(), {});
  scenario.parameters.windows_per_hfi = 4;
  for (int i = 0; i < 8; ++i) a.Reserve();
  a.Reserve().expect = Status::kNoWindowFree;
  a.Reserve(3).expect = Status::kWindowTaken;
  a.Reserve(8).expect = Status::kNoSuchWindow;
  WindowOperation release;
  release.op = WindowOp::kRelease;
  release.window = 3;
  a.Do(release);
  a.Do(release).expect = Status::kWindowClosed;
  a.Reserve();
  std::get<WindowWorkload>(scenario.workload).programs = {a.program()};
  PlayPrograms(scenario);
}

TEST(WindowsTest, WhatASenderDoesWrongHasItsReason) {
  Script a(0, 1);
  a.Send(WindowOp::kImmediateSend, 1, 0, {}).expect = Status::kNoSuchWindow;  // has none yet
  // The first number of no operation: that is said before anything about the window.
  a.Send(static_cast<WindowOp>(kWindowOps), 1, 0, {}).expect = Status::kInvalid;
  a.Reserve(2);
  a.Send(WindowOp::kFifoSend, 1, 0, {}).expect = Status::kNotConfigured;
  a.Fifos(2, 0);
  a.Send(WindowOp::kImmediateSend, 1, 0, Bytes(128)).expect = Status::kTooLarge;
  a.Send(WindowOp::kFifoSend, 1, 0, Bytes(2049)).expect = Status::kTooLarge;
  a.Send(WindowOp::kImmediateSend, 4, 0, Bytes(1)).expect = Status::kNoSuchNode;
  a.Send(WindowOp::kImmediateSend, 1, 512, Bytes(1)).expect = Status::kNoSuchWindow;
  a.Send(WindowOp::kIpSend, 1, 0, {}).expect = Status::kEmpty;
  a.Fence(false, false).expect = Status::kInvalid;
  // The third finds the send FIFO full.
  a.Send(WindowOp::kFifoSend, 1, 0, Bytes(8)).wait = false;
  a.Send(WindowOp::kFifoSend, 1, 0, Bytes(8)).wait = false;
  a.Send(WindowOp::kFifoSend, 1, 0, Bytes(8)).expect = Status::kSendFifoFull;
  a.AwaitAll();
  a.Send(WindowOp::kFifoSend, 1, 0, Bytes(8));
  WindowOperation space;
  space.op = WindowOp::kReturnSpace;
  space.count = 1;
  a.Do(space).expect = Status::kNotConfigured;
  WindowStep& foreign = a.Send(WindowOp::kImmediateSend, 1, 0, Bytes(1));
  foreign.operation.job = 99;
  foreign.expect = Status::kWrongKey;
  const RunResult result = PlayPrograms(Machine(Drawer(), {a}));
  EXPECT_EQ(Dropped(result, DropReason::kWindowClosed), 3u);  // nobody reserved window 0 over there
}

TEST(WindowsTest, ImmediateBuffersOfAnHfiAreShared) {
  Script a(0, 1), b(0, 1, "other HFI");
  Scenario scenario = Machine(Drawer(), {});
  scenario.parameters.windows.immediate_buffers = 3;
  a.Reserve(0);
  a.Reserve(1);
  for (int i = 0; i < 3; ++i) {
    WindowStep& step = a.Send(WindowOp::kImmediateSend, 1, 0, Bytes(64));
    step.wait = false;
    step.operation.window = static_cast<WindowId>(i % 2);
  }
  a.Send(WindowOp::kImmediateSend, 1, 0, Bytes(64)).expect = Status::kNoImmediateBuffer;
  a.AwaitAll();
  a.Send(WindowOp::kImmediateSend, 1, 0, Bytes(64));  // they are free again
  b.Reserve(256);
  b.Send(WindowOp::kImmediateSend, 1, 0, Bytes(64));
  std::get<WindowWorkload>(scenario.workload).programs = {a.program(), b.program()};
  const RunResult result = PlayPrograms(scenario);
  EXPECT_EQ(Counted(result, HfiCounter::kImmediateSent), 5u);
}

TEST(WindowsTest, AReleasedWindowGivesItsImmediateBuffersBack) {
  Script a(0, 1);
  Scenario scenario = Machine(Drawer(), {});
  scenario.parameters.windows.immediate_buffers = 3;
  for (int round = 0; round < 2; ++round) {
    a.Reserve(0);
    for (int i = 0; i < 3; ++i) {
      WindowStep& step = a.Send(WindowOp::kImmediateSend, 1, 0, Bytes(64));
      step.wait = false;
      step.expect = Status::kWindowClosed;  // they have not left yet
    }
    WindowOperation release;
    release.op = WindowOp::kRelease;
    release.window = 0;
    a.Do(release);
  }
  std::get<WindowWorkload>(scenario.workload).programs = {a.program()};
  EXPECT_EQ(Counted(PlayPrograms(scenario), HfiCounter::kImmediateSent), 0u);
}

TEST(WindowsTest, AFullReceiveFifoDropsAndCounts) {
  Script a(0, 1), b(1, 1);
  a.Open(0, 0).At(kLater);
  b.Reserve(4);
  b.Fifos(1, 3);
  for (int i = 0; i < 5; ++i) a.Send(WindowOp::kFifoSend, 1, 4, Pattern(100, 1));
  a.At(3 * kLater);
  a.Send(WindowOp::kFifoSend, 1, 4, Pattern(100, 2));
  b.At(2 * kLater);
  b.AwaitReceived(3).expect_data = Pattern(100, 1);
  b.AwaitReceived(1).expect_data = Pattern(100, 2);
  const RunResult result = PlayPrograms(Machine(Drawer(), {a, b}));
  EXPECT_EQ(Dropped(result, DropReason::kReceiveFifoFull), 2u);
  EXPECT_EQ(Counted(result, HfiCounter::kReceiveDropped), 2u);
  EXPECT_EQ(Counted(result, HfiCounter::kReceived), 4u);
}

TEST(WindowsTest, APacketOfAnotherJobIsDroppedAndCounted) {
  Script a(0, 1), b(1, 2), c(2, 2);
  a.Open(0, 0).At(kLater);
  c.Open(0, 0).At(kLater);
  b.Open(4, 0);
  a.Send(WindowOp::kFifoSend, 1, 4, Pattern(64, 1));
  a.Send(WindowOp::kImmediateSend, 1, 4, Pattern(64, 1));
  c.At(2 * kLater);
  c.Send(WindowOp::kFifoSend, 1, 4, Pattern(64, 9));
  b.AwaitReceived(1).expect_data = Pattern(64, 9);
  const RunResult result = PlayPrograms(Machine(Drawer(), {a, b, c}));
  EXPECT_EQ(Dropped(result, DropReason::kWrongKey), 2u);
}

TEST(WindowsTest, MemoryIsRegisteredByteByByte) {
  Script a(0, 1), b(0, 2, "another job");
  a.Reserve(0);
  a.Register(kMemory, 100);
  a.Register(kMemory + 50, 10).expect = Status::kOverlap;
  a.Register(kMemory + 99, 1).expect = Status::kOverlap;
  a.Register(kMemory - 5, 6).expect = Status::kOverlap;
  a.Register(kMemory - 5, 5);
  a.Register(kMemory + 100, 28);
  a.Register(kMemory, 0).expect = Status::kEmpty;
  a.Register(~Address{0} - 4, 8).expect = Status::kOutOfRange;
  a.Register(0, std::uint64_t{1} << 31, 3).expect = Status::kNoMemory;
  a.Expect(kMemory, Bytes(100));  // zeros
  a.Write(kMemory + 3, Pattern(97, 1));
  a.Expect(kMemory + 3, Pattern(97, 1));
  a.Write(kMemory + 3, Bytes(98)).expect = Status::kOutOfRange;  // the next region is another one
  a.Write(kMemory + 200, Bytes(1)).expect = Status::kNotRegistered;
  a.Write(kMemory, Bytes(1), 4).expect = Status::kNotRegistered;
  a.Write(kMemory, {}).expect = Status::kEmpty;
  a.At(2 * kLater);
  WindowOperation deregister;
  deregister.op = WindowOp::kDeregister;
  deregister.address = kMemory + 1;
  a.Do(deregister).expect = Status::kNotRegistered;  // not its beginning
  deregister.address = kMemory;
  a.Do(deregister);
  a.Expect(kMemory, Bytes(1)).expect = Status::kNotRegistered;
  a.Register(kMemory, 100);
  a.Expect(kMemory, Bytes(100));  // nothing of before
  // Job 2 sees nothing of it.
  b.At(kLater);
  b.Reserve(1);
  b.Expect(kMemory, Bytes(1)).expect = Status::kWrongKey;
  b.Write(kMemory, Bytes(1)).expect = Status::kWrongKey;
  b.Register(kMemory + 4096, 8).expect = Status::kWrongKey;
  b.Do(deregister).expect = Status::kWrongKey;
  WindowStep& own = b.Expect(kMemory, Bytes(1));
  own.operation.job = 1;  // says it was the other one
  own.expect = Status::kWrongKey;
  WindowStep& window = b.Expect(kMemory, Bytes(1));
  window.operation.window = 0;  // or takes its window
  window.expect = Status::kWrongKey;
  PlayPrograms(Machine(Drawer(), {a, b}));
}

TEST(WindowsTest, ReleaseEndsWhatIsUnderWay) {
  Script a(0, 1);
  a.Open(0, 1 << 20);
  WindowStep& put = a.Put(1, 0, kMemory, kMemory, 1 << 20);
  put.wait = false;
  put.expect = Status::kWindowClosed;
  WindowStep& post = a.Do({});
  post.operation.op = WindowOp::kIpReceive;
  post.operation.segments = {{0, kMemory, 100}};
  post.wait = false;
  post.expect = Status::kWindowClosed;
  WindowStep& compute = a.Step(WindowStep::Kind::kCompute);
  compute.time = 5 * kMicrosecond;
  WindowOperation release;
  release.op = WindowOp::kRelease;
  a.Do(release);
  a.AwaitAll();
  // The memory of the job went with its last window.
  a.Reserve(0);
  a.Expect(kMemory, Bytes(1)).expect = Status::kNotRegistered;
  PlayPrograms(Machine(Drawer(), {a}));
}

TEST(WindowsTest, TranslationsMissOnceAndAreForgottenWithTheirRegion) {
  Script a(0, 1), b(1, 1);
  b.Open(0, 4 << 16).At(10 * kLater);
  a.Open(0, 65536).At(kLater);
  // Four pages over there, twice: each misses once.
  for (int round = 0; round < 2; ++round) {
    for (std::uint64_t page = 0; page < 4; ++page) a.Put(1, 0, kMemory, kMemory + page * 65536, 8);
  }
  const RunResult result = PlayPrograms(Machine(Drawer(), {a, b}));
  EXPECT_EQ(result.total.nmmu_misses, 5u);  // and one page here
  EXPECT_EQ(result.total.nmmu_hits, 11u);
}

TEST(WindowsTest, ARangeOverTwoPagesMissesOnceInEachOfThem) {
  using Counts = std::pair<std::uint64_t, std::uint64_t>;  // misses, hits
  const auto translated = [](bool put) {
    Script a(0, 1), b(1, 1);
    b.Open(0, 4 << 16).At(10 * kLater);
    a.Open(0, 4 << 16).At(kLater);
    // What is written begins 1,000 bytes before the end of a page.
    if (put) {
      a.Put(1, 0, kMemory + 65536 - 1000, kMemory, 65536);
    } else {
      a.Get(1, 0, kMemory, kMemory, 65536 + 2048);
    }
    const RunResult result = PlayPrograms(Machine(Drawer(), {a, b}));
    return Counts(result.total.nmmu_misses, result.total.nmmu_hits);
  };
  // Two pages here, both of the first packet, and 32 packets into one page over there.
  EXPECT_EQ(translated(true), Counts(3, 31));
  // Two requests, each in a page of its own, and 33 packets into two pages here.
  EXPECT_EQ(translated(false), Counts(4, 31));
}

TEST(WindowsTest, TheCacheKeepsAsManyPagesAsItHasEntriesInWhateverOrderTheyAreUsed) {
  Script a(0, 1), b(1, 1);
  b.Open(0, 8 << 16).At(10 * kLater);
  a.Open(0, 65536).At(kLater);
  const std::uint64_t pages[] = {0, 1, 2, 3, 4, 5, 6, 7, 1, 0, 2, 7, 3, 6, 4, 5, 0};
  for (const std::uint64_t page : pages) a.Put(1, 0, kMemory, kMemory + page * 65536, 8);
  Scenario scenario = Machine(Drawer(), {a, b});
  scenario.parameters.windows.nmmu_entries = 8;
  const RunResult result = PlayPrograms(scenario);
  EXPECT_EQ(result.total.nmmu_misses, 8u + 1u);  // and one page here
  EXPECT_EQ(result.total.nmmu_hits, 2 * std::size(pages) - 9u);
}

TEST(WindowsTest, MemoryIsRegisteredUpToTheLastPageOfAHub) {
  Script a(0, 1);
  Scenario scenario = Machine(Drawer(), {});
  scenario.parameters.windows.registered_bytes = 2 << 16;
  a.Reserve(0);
  a.Register(kMemory, 2 << 16);
  a.Register(2 * kMemory, 1).expect = Status::kNoMemory;
  std::get<WindowWorkload>(scenario.workload).programs = {a.program()};
  PlayPrograms(scenario);
}

// Reserves window 0 of node 0, forgets itself, which releases the window, and reserves it again.
class Returning final : public HubWorkload, public WindowListener {
 public:
  Returning(HubServices& hub, std::vector<WindowEvent>* heard) : hub_(hub), heard_(heard) {}
  void Start() override { Reserve(); }
  void OnWindowEvent(const WindowEvent& event) override {
    heard_->push_back(event);
    if (heard_->size() > 1) return;
    hub_.windows()->Forget(this);
    Reserve();
  }

 private:
  void Reserve() {
    WindowOperation reserve;
    reserve.op = WindowOp::kReserve;
    reserve.window = 0;
    reserve.job = 1;
    if (hub_.context().node == 0) hub_.windows()->Issue(reserve, this);
  }
  HubServices& hub_;
  std::vector<WindowEvent>* heard_;
};

TEST(WindowsTest, WhoForgotItselfHearsOfWhatItIssuesLater) {
  std::vector<WindowEvent> heard;
  Scenario scenario;
  scenario.topology = Drawer();
  scenario.workload = OtherWorkload([&heard](HubServices& hub) -> std::unique_ptr<HubWorkload> {
    return std::make_unique<Returning>(hub, &heard);
  });
  const auto result = RunScenario(scenario, {});
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_EQ(heard.size(), 2u);
  EXPECT_EQ(heard[0].status, Status::kOk);
  EXPECT_EQ(heard[1].status, Status::kOk) << "its window was released";
}

// What is sent is the data, whatever an operation from outside says of other bytes.
TEST(WindowsTest, BytesWithoutDataSendNothing) {
  Script a(0, 1), b(1, 1);
  a.Open(0, 4096).At(20 * kMicrosecond);
  b.Open(0, 4096);
  for (const WindowOp op : {WindowOp::kImmediateSend, WindowOp::kFifoSend}) {
    a.Send(op, 1, 0, {}).operation.bytes = 34;
    b.AwaitReceived();
  }
  const RunResult result = PlayPrograms(Machine({1, 1, 2, 1}, {a, b}));
  EXPECT_EQ(result.total.packets_delivered, 2u);
}

}  // namespace
}  // namespace percs
