// Method: the block by itself against arithmetic; then RDMA from and to devices on a drawer, whose
// times are those of the PCI Express links to the picosecond; devices unplugged under it; and
// everything that cannot be.
#include "emulator/hfi/pcie.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
using testing::HasSubstr;

constexpr Address kDevice = 0x8000000;  // memory whose bytes a device has
constexpr Time kLaneFlit = 256'000;

TopologySpec DrawerWith(std::vector<PcieDevice> devices) {
  TopologySpec spec{1, 1, 4, 1};
  spec.pcie = std::move(devices);
  return spec;
}

std::uint64_t CountedAt(RunResult result, int port, PcieCounter counter) {
  return result.total.Pcie(port, counter);
}

FaultSpec Unplug(NodeId hub, int port, Time at, Time duration) {
  FaultSpec fault;
  fault.id = "unplug";
  fault.kind = FaultKind::kPcieUnplugged;
  fault.select.in = {hub};
  fault.pcie_port = port;
  fault.at = at;
  fault.duration = duration;
  return fault;
}

// --- The block
TEST(PcieTest, ALinkIsAsWideAsPortAndDeviceBothAre) {
  for (int port = 0; port < kPciePorts; ++port) {
    for (const int lanes : {1, 4, 8, 16}) {
      NodeStats stats;
      Pcie pcie({{.port = port, .lanes = lanes}}, kLaneFlit, stats);
      const int width = std::min(lanes, port == 2 ? 8 : 16);
      EXPECT_EQ(pcie.LinkTime(port, 2048), 16 * kLaneFlit / width) << port << " " << lanes;
      EXPECT_EQ(pcie.LinkTime(port, 1), (kLaneFlit + 128 * width - 1) / (128 * width))
          << "rounded up";
    }
  }
}

// 16 + 16 + 8 lanes, both ways at once, for a while: PERCS-021 has 40 GB/s.
TEST(PcieTest, TheThreePortsTogetherHaveFortyGigabytesPerSecond) {
  NodeStats stats;
  Pcie pcie({{.port = 0, .lanes = 16}, {.port = 1, .lanes = 16}, {.port = 2, .lanes = 8}},
            kLaneFlit, stats);
  std::uint64_t bytes = 0;
  for (int port = 0; port < kPciePorts; ++port) {
    for (const PcieWay way : {PcieWay::kFromDevice, PcieWay::kToDevice}) {
      while (pcie.Begin(way, port, 2048, 0).done <= kMicrosecond + kMillisecond) bytes += 2048;
    }
  }
  EXPECT_NEAR(static_cast<double>(bytes) / 1e-3 / 1e9, 40, 40 * 0.002);
}

TEST(PcieTest, TransfersOfOneWayFollowEachOtherAndWaysDoNotDisturb) {
  NodeStats stats;
  Pcie pcie({{.port = 1, .lanes = 4, .latency = 700}}, kLaneFlit, stats);
  const Time each = pcie.LinkTime(1, 2048);
  EXPECT_EQ(pcie.Begin(PcieWay::kFromDevice, 1, 2048, 1000).done, 1000 + each + 700);
  EXPECT_EQ(pcie.Begin(PcieWay::kFromDevice, 1, 2048, 1000, false).done, 1000 + 2 * each)
      << "of a stream";
  EXPECT_EQ(pcie.Begin(PcieWay::kToDevice, 1, 2048, 1500).done, 1500 + each + 700);
  EXPECT_EQ(pcie.Begin(PcieWay::kToDevice, 1, 2048, 1500, false).done, 1500 + 2 * each + 700);
  EXPECT_EQ(pcie.Begin(PcieWay::kFromDevice, 1, 2048, 10 * each).done, 11 * each + 700)
      << "after a pause";
}

TEST(PcieTest, WhatIsUnderWayWhenItIsUnpluggedIsLostAndTheBytesStay) {
  NodeStats stats;
  Pcie pcie({{.port = 2, .lanes = 8, .bytes = 200'000}}, kLaneFlit, stats);
  const Bytes data = Pattern(150'000, 3);
  pcie.Write(2, 50'000, data.data(), data.size());
  const PcieTransfer before = pcie.Begin(PcieWay::kToDevice, 2, 2048, 0);
  EXPECT_EQ(pcie.End(PcieWay::kToDevice, 2, before, 2048), Status::kOk);
  pcie.SetUnplugged(0b011);
  EXPECT_EQ(pcie.CheckThere(2), Status::kOk) << "another port";
  pcie.SetUnplugged(0b100);
  EXPECT_EQ(pcie.CheckThere(2), Status::kNoDevice);
  EXPECT_EQ(pcie.CheckRange(2, 0, 1), Status::kNoDevice);
  EXPECT_EQ(pcie.Begin(PcieWay::kToDevice, 2, 2048, 77).done, 77) << "nothing to wait for";
  pcie.SetUnplugged(0);
  EXPECT_EQ(pcie.End(PcieWay::kToDevice, 2, before, 2048), Status::kNoDevice)
      << "it was away meanwhile";
  EXPECT_EQ(pcie.CheckRange(2, 200'000, 0), Status::kOk);
  EXPECT_EQ(pcie.CheckRange(2, 199'999, 2), Status::kOutOfRange);
  EXPECT_EQ(pcie.CheckRange(2, ~std::uint64_t{0}, 2), Status::kOutOfRange);
  EXPECT_EQ(pcie.CheckThere(0), Status::kNoDevice);
  EXPECT_EQ(pcie.CheckThere(-1), Status::kNoDevice);
  EXPECT_EQ(pcie.CheckThere(3), Status::kNoDevice);
  Bytes read(200'000);
  pcie.Read(2, 0, read.data(), read.size());
  EXPECT_EQ(Bytes(read.begin() + 50'000, read.end()), data);
  EXPECT_EQ(Bytes(read.begin(), read.begin() + 50'000), Bytes(50'000)) << "zeros";
  EXPECT_EQ(stats.Pcie(2, PcieCounter::kBytesOut), 2048u);
  EXPECT_EQ(stats.Pcie(2, PcieCounter::kBytesIn), 0u);
  EXPECT_EQ(stats.Pcie(2, PcieCounter::kRefused), 3u);
}

// --- RDMA
enum class Moves { kWriteFrom, kWriteTo, kReadFrom, kReadTo };

// An operation of `bytes` that begins when pages are translated: its duration.
Time Duration(Moves moves, const PcieDevice& device, std::uint64_t bytes) {
  Script a(0, 1), b(1, 1);
  const bool here = moves == Moves::kWriteFrom || moves == Moves::kReadTo;
  const bool write = moves == Moves::kWriteFrom || moves == Moves::kWriteTo;
  const Address there_at = here ? kMemory : kDevice, here_at = here ? kDevice : kMemory;
  a.Open(0, 1 << 20);
  b.Open(0, 1 << 20);
  (here ? a : b).RegisterDevice(kDevice, 1 << 20, device.port);
  const Bytes data = Pattern(bytes, bytes);
  (write ? a : b).Write(write ? here_at : there_at, data);
  a.At(kLater);
  for (int i = 0; i < 2; ++i) {
    if (i == 1) a.Mark();
    write ? a.Put(1, 0, here_at, there_at, bytes) : a.Get(1, 0, there_at, here_at, bytes);
  }
  a.Mark();
  (write ? b : a).At(30 * kMillisecond);
  (write ? b : a).Expect(write ? there_at : here_at, data);
  PcieDevice plugged = device;
  plugged.hub = here ? 0 : 1;
  const RunResult result = PlayPrograms(Machine(DrawerWith({plugged}), {a, b}));
  EXPECT_EQ(result.window_programs[0].wrong + result.window_programs[1].wrong, 0u);
  const bool from = moves == Moves::kWriteFrom || moves == Moves::kReadFrom;
  EXPECT_EQ(CountedAt(result, device.port, from ? PcieCounter::kBytesIn : PcieCounter::kBytesOut),
            2 * bytes);
  EXPECT_EQ(result.total.packets_resent, 0u) << "however slow the device is";
  const std::vector<Time>& marks = result.window_programs[0].marks;
  return marks.size() == 2 ? marks[1] - marks[0] : 0;
}

// What it takes more for twice as much is what the link to the device takes for that: x1 0.5 GB/s,
// x4 2, x8 4, x16 8.
TEST(PcieTest, ADevicePacesWhateverMovesItsBytes) {
  const std::uint64_t bytes = 512 << 10;
  for (const int lanes : {1, 4, 8, 16}) {
    const PcieDevice device{.port = 0, .lanes = lanes};
    const Time link = static_cast<Time>(bytes / 128) * kLaneFlit / lanes;
    for (const Moves moves : {Moves::kWriteFrom, Moves::kWriteTo, Moves::kReadTo}) {
      EXPECT_EQ(Duration(moves, device, 2 * bytes) - Duration(moves, device, bytes), link)
          << lanes << " lanes, " << static_cast<int>(moves);
    }
    const Time read =
        Duration(Moves::kReadFrom, device, 2 * bytes) - Duration(Moves::kReadFrom, device, bytes);
    EXPECT_NEAR(static_cast<double>(read), static_cast<double>(link),
                0.01 * static_cast<double>(link))
        << lanes;
  }
}

// A short write from a device takes the place of memory_read with its latency and link; into it,
// that of memory_write.
TEST(PcieTest, LatencyIsTheSumOfTheParameters) {
  const PcieDevice fast{.port = 1, .lanes = 16, .latency = 0},
      slow{.port = 1, .lanes = 16, .latency = 3 * kMicrosecond};
  for (const Moves moves : {Moves::kWriteFrom, Moves::kWriteTo, Moves::kReadFrom, Moves::kReadTo}) {
    EXPECT_EQ(Duration(moves, slow, 128) - Duration(moves, fast, 128), 3 * kMicrosecond)
        << static_cast<int>(moves);
    const PcieDevice narrow{.port = 1, .lanes = 1, .latency = 0};
    EXPECT_EQ(Duration(moves, narrow, 128) - Duration(moves, fast, 128),
              kLaneFlit - kLaneFlit / 16);
  }
  const auto memory = [](bool write) {
    Script a(0, 1), b(1, 1);
    a.Open(0, 4096);
    b.Open(0, 4096).At(kLater);
    a.At(kLater);
    for (int i = 0; i < 2; ++i) {
      if (i == 1) a.Mark();
      write ? a.Put(1, 0, kMemory, kMemory, 128) : a.Get(1, 0, kMemory, kMemory, 128);
    }
    a.Mark();
    const std::vector<Time> marks =
        PlayPrograms(Machine(DrawerWith({}), {a, b})).window_programs[0].marks;
    return marks[1] - marks[0];
  };
  const WindowParameters w;
  const Time link = kLaneFlit / 16;
  EXPECT_EQ(Duration(Moves::kWriteFrom, fast, 128) - memory(true), link - w.memory_read);
  EXPECT_EQ(Duration(Moves::kWriteTo, fast, 128) - memory(true), link - w.memory_write);
  EXPECT_EQ(Duration(Moves::kReadFrom, fast, 128) - memory(false), link - w.memory_read);
  EXPECT_EQ(Duration(Moves::kReadTo, fast, 128) - memory(false), link - w.memory_write);
}

// Hub 0 has devices; `puts` write out of them, each from its own window, to its own hub. Times they
// take.
std::vector<Time> Writes(const std::vector<PcieDevice>& devices, const std::vector<int>& ports,
                         bool back_at_once = false) {
  const std::uint64_t bytes = 1 << 20;
  std::vector<Script> scripts;
  for (std::size_t i = 0; i < ports.size(); ++i) {
    const auto window = static_cast<WindowId>(i);
    const NodeId to = static_cast<NodeId>(1 + i);
    Script a(0, 1, "from"), b(to, 1);
    a.Reserve(window);
    a.RegisterDevice(kDevice, bytes, ports[i], i * bytes, window);
    a.At(2 * kLater);
    a.Mark();
    a.Put(to, 0, kDevice, kMemory, bytes).operation.context = window;
    a.Mark();
    b.Open(0, 2 * bytes).At(2 * kLater);
    b.Mark();
    // The other way over the same port.
    if (back_at_once) b.Put(0, window, kMemory + bytes, kDevice, bytes, window);
    b.Mark();
    scripts.push_back(a);
    scripts.push_back(b);
  }
  std::vector<Time> took;
  for (const WindowProgramResult& program :
       PlayPrograms(Machine(DrawerWith(devices), scripts)).window_programs) {
    EXPECT_EQ(program.wrong, 0u) << program.problem;
    took.push_back(program.marks[1] - program.marks[0]);
  }
  return took;
}

TEST(PcieTest, RegionsOfOnePortShareItAndPortsAndWaysDoNot) {
  const std::vector<PcieDevice> devices = {{.port = 0, .lanes = 8}, {.port = 1, .lanes = 8}};
  const Time alone = Writes(devices, {0})[0];
  const Time link = 8192 * kLaneFlit / 8;
  EXPECT_NEAR(static_cast<double>(alone), static_cast<double>(link),
              0.03 * static_cast<double>(link));
  const std::vector<Time> both = Writes(devices, {0, 0});
  for (const std::size_t i : {0, 2})
    EXPECT_NEAR(static_cast<double>(both[i]), 2.0 * static_cast<double>(link),
                0.03 * static_cast<double>(link));
  const std::vector<Time> apart = Writes(devices, {0, 1});
  for (const std::size_t i : {0, 2})
    EXPECT_NEAR(static_cast<double>(apart[i]), static_cast<double>(link),
                0.03 * static_cast<double>(link));
  const std::vector<Time> ways = Writes(devices, {0}, true);
  for (const Time took : ways)
    EXPECT_NEAR(static_cast<double>(took), static_cast<double>(link),
                0.03 * static_cast<double>(link));
}

// A device of one lane at a hub that many write to: what waits for it stays bounded, and everybody
// is served.
TEST(PcieTest, ManyWritersToOneSlowDeviceAreAllServed) {
  std::vector<Script> scripts;
  Script disk(0, 1, "disk");
  disk.Open(0, 0);
  disk.RegisterDevice(kDevice, 3 << 20, 0);
  scripts.push_back(disk);
  for (NodeId node = 1; node < 4; ++node) {
    Script writer(node, 1);
    writer.Open(0, 1 << 20);
    writer.Write(kMemory, Pattern(1 << 20, node));
    writer.At(kLater);
    writer.Put(0, 0, kMemory, kDevice + (node - 1) * (1 << 20), 1 << 20);
    writer.Get(0, 0, kDevice + (node - 1) * (1 << 20), kMemory, 1 << 20);
    writer.Expect(kMemory, Pattern(1 << 20, node));
    scripts.push_back(writer);
  }
  const RunResult result = PlayPrograms(Machine(DrawerWith({{.port = 0, .lanes = 1}}), scripts));
  for (const auto& program : result.window_programs)
    EXPECT_EQ(program.wrong, 0u) << program.problem;
  EXPECT_EQ(result.total.packets_resent, 0u);
  const Time link = 3 * 8192 * kLaneFlit;
  // Whoever has written first reads while others still write.
  EXPECT_LT(result.virtual_time, 2 * link);
  EXPECT_GT(result.virtual_time, link + link * 9 / 10);
}

// --- Hot plug
struct Unplugged {
  RunResult result;
  std::vector<Time> marks;
};

// One operation on a device of 1 MiB that is unplugged in the middle, one while it is away, one
// when it is back.
Unplugged RunUnplugged(Moves moves, Time at, Time away) {
  Script a(0, 1), b(1, 1);
  const bool here = moves == Moves::kWriteFrom || moves == Moves::kReadTo;
  const bool write = moves == Moves::kWriteFrom || moves == Moves::kWriteTo;
  const Address there_at = here ? kMemory : kDevice, here_at = here ? kDevice : kMemory;
  a.Open(0, 1 << 20);
  b.Open(0, 1 << 20);
  (here ? a : b).RegisterDevice(kDevice, 1 << 20, 0);
  const Bytes data = Pattern(1 << 20, 1);
  (write ? a : b).Write(write ? here_at : there_at, data);
  a.At(kLater);
  const auto move = [&]() -> WindowStep& {
    return write ? a.Put(1, 0, here_at, there_at, 1 << 20)
                 : a.Get(1, 0, there_at, here_at, 1 << 20);
  };
  move().expect = Status::kNoDevice;
  a.Mark();
  if (away > 100 * kMicrosecond) {
    move().expect = Status::kNoDevice;
    a.Mark();
    Script& owner = here ? a : b;
    owner.At(at + away / 2);
    owner.Expect(kDevice, Bytes(4)).expect = Status::kNoDevice;
  }
  a.At(at + away + kMicrosecond);
  move();
  a.Mark();
  (write ? b : a).At(20 * kMillisecond);
  (write ? b : a).Expect(write ? there_at : here_at, data);
  Scenario scenario = Machine(
      DrawerWith({{.hub = static_cast<NodeId>(here ? 0 : 1), .port = 0, .lanes = 8}}), {a, b});
  scenario.faults = {Unplug(here ? 0 : 1, 0, at, away)};
  Unplugged unplugged;
  unplugged.result = PlayPrograms(scenario);
  for (const auto& program : unplugged.result.window_programs)
    EXPECT_EQ(program.wrong, 0u) << program.problem;
  unplugged.marks = unplugged.result.window_programs[0].marks;
  return unplugged;
}

TEST(PcieTest, WhatIsUnderWayEndsWhenTheDeviceIsUnpluggedAndWorksWhenItIsBack) {
  for (const Moves moves : {Moves::kWriteFrom, Moves::kWriteTo, Moves::kReadFrom, Moves::kReadTo}) {
    const Time at = kLater + 100 * kMicrosecond, away = 400 * kMicrosecond;  // 1 MiB takes 262 us
    const Unplugged unplugged = RunUnplugged(moves, at, away);
    ASSERT_EQ(unplugged.marks.size(), 3u) << static_cast<int>(moves);
    EXPECT_GT(unplugged.marks[0], at);
    EXPECT_LT(unplugged.marks[0], at + 5 * kMicrosecond) << "told at once";
    EXPECT_LT(unplugged.marks[1], at + 10 * kMicrosecond) << "likewise";
    EXPECT_GT(CountedAt(unplugged.result, 0, PcieCounter::kRefused), 1u);
  }
}

// What has left for a device of one lane when that is unplugged, and is not in it, is what may be
// on its way.
TEST(PcieTest, AWriterIsToldToWait) {
  Script a(0, 1), b(1, 1);
  a.Open(0, 1 << 20).At(kLater);
  a.Put(1, 0, kMemory, kDevice, 1 << 20).expect = Status::kNoDevice;
  b.Open(0, 0);
  b.RegisterDevice(kDevice, 1 << 20, 0);
  Scenario scenario = Machine(DrawerWith({{.hub = 1, .port = 0, .lanes = 1}}), {a, b});
  scenario.faults = {Unplug(1, 0, kLater + 300 * kMicrosecond, kMillisecond)};
  const RunResult result = PlayPrograms(scenario);
  const WindowParameters& w = scenario.parameters.windows;
  const auto paced = static_cast<std::uint64_t>(w.read_units * w.read_unit_packets);
  const std::uint64_t done = CountedAt(result, 0, PcieCounter::kBytesOut) / 2048;
  EXPECT_NEAR(static_cast<double>(done), 300e-6 * 0.5e9 / 2048, 2);
  const std::uint64_t waited = Counted(result, HfiCounter::kSent) - done;  // answers too, a few
  EXPECT_LE(waited, paced + static_cast<std::uint64_t>(scenario.parameters.flow_window_packets));
  EXPECT_GE(waited, paced / 2);
}

// Too short to be noticed by a packet that waits: what was on its way is lost all the same.
TEST(PcieTest, ABlinkOfTheDeviceEndsWhatIsUnderWay) {
  for (const Moves moves : {Moves::kWriteFrom, Moves::kWriteTo, Moves::kReadFrom, Moves::kReadTo}) {
    const Unplugged unplugged =
        RunUnplugged(moves, kLater + 100 * kMicrosecond, 1 + 50 * kMicrosecond);
    EXPECT_EQ(unplugged.marks.size(), 2u) << static_cast<int>(moves);
  }
  const Unplugged unplugged = RunUnplugged(Moves::kWriteTo, kLater + 100 * kMicrosecond, 10);
  EXPECT_EQ(unplugged.marks.size(), 2u);
}

// The device is back before most of the packets come: none of them is done any more.
TEST(PcieTest, AWriteThatHasFailedDoesNothingLater) {
  Script a(0, 1), b(1, 1);
  const std::uint64_t bytes = 200 << 10;
  a.Open(0, bytes);
  a.Write(kMemory, Pattern(bytes, 1));
  a.At(kLater);
  a.Put(1, 0, kMemory, kDevice, bytes).expect = Status::kNoDevice;
  b.Open(0, 0);
  b.RegisterDevice(kDevice, bytes, 0);
  b.At(kMillisecond);
  const Bytes data = Pattern(8 << 10, 1);
  b.Expect(kDevice, data);
  b.Expect(kDevice + (32 << 10), Bytes(168 << 10));
  Scenario scenario = Machine(DrawerWith({{.hub = 1, .port = 0, .lanes = 16}}), {a, b});
  scenario.faults = {Unplug(1, 0, kLater + 4 * kMicrosecond, kNanosecond)};
  const RunResult result = PlayPrograms(scenario);
  for (const auto& program : result.window_programs)
    EXPECT_EQ(program.wrong, 0u) << program.problem;
}

// A device that is plugged in later: unplugged from the start.
TEST(PcieTest, ADeviceMayComeLater) {
  Script a(0, 1);
  a.Reserve(0);
  a.At(kLater);
  a.RegisterDevice(kDevice, 4096, 1).expect = Status::kNoDevice;
  a.At(3 * kLater);
  a.RegisterDevice(kDevice, 4096, 1);
  a.Write(kDevice, Pattern(4096, 1));
  a.Expect(kDevice, Pattern(4096, 1));
  Scenario scenario = Machine(DrawerWith({{.port = 1}}), {a});
  scenario.faults = {Unplug(0, 1, 0, 2 * kLater)};
  EXPECT_EQ(PlayPrograms(scenario).window_programs[0].wrong, 0u);
}

// --- What cannot be
TEST(PcieTest, WhatCannotBeHasItsReason) {
  Script a(0, 1), other(0, 2, "another job"), b(1, 1);
  a.Open(0, 4096);
  a.RegisterDevice(kDevice, 4096, 1).expect = Status::kNoDevice;
  a.RegisterDevice(kDevice, 4096, 3).expect = Status::kNoDevice;
  a.RegisterDevice(kDevice, 4096, -2).expect = Status::kNoDevice;
  a.RegisterDevice(kDevice, 100'001, 0).expect = Status::kOutOfRange;
  a.RegisterDevice(kDevice, 4096, 0, 100'000).expect = Status::kOutOfRange;
  a.RegisterDevice(kMemory + 8192, 4096, 0).expect =
      Status::kOverlap;  // a page that has main memory
  a.RegisterDevice(kDevice, 65536, 0);
  a.Register(kDevice + 65536, 4096);
  a.RegisterDevice(kDevice + (1 << 20), 100, 0,
                   50);  // the same bytes at another address: the same job's
  a.Register(kDevice + (1 << 20) + 4096, 64).expect = Status::kOverlap;
  a.Write(kDevice + 50, Pattern(100, 9));
  a.Expect(kDevice + (1 << 20), Pattern(100, 9));
  // FIFOs, datagrams and atomics are in main memory.
  WindowOperation fifos;
  fifos.op = WindowOp::kConfigure;
  fifos.send_fifo = {kDevice, 4};
  a.Do(fifos).expect = Status::kOnDevice;
  fifos = {};
  fifos.op = WindowOp::kConfigure;
  fifos.receive_fifo = {kDevice, 4};
  a.Do(fifos).expect = Status::kOnDevice;
  WindowOperation datagram;
  datagram.op = WindowOp::kIpSend;
  datagram.node = 1;
  datagram.segments = {{0, kDevice, 64}};
  a.Do(datagram).expect = Status::kOnDevice;
  datagram.op = WindowOp::kIpReceive;
  a.Do(datagram).expect = Status::kOnDevice;
  other.Open(1, 0, 1);
  other.At(kLater);
  other.RegisterDevice(kDevice, 10, 0, 65530, 1).expect = Status::kWrongKey;
  other.RegisterDevice(kDevice, 10, 0, 65536, 1);
  b.Open(0, 4096).At(2 * kLater);
  b.Update(0, 0, {{AtomicOp::kAdd, 8, true, kDevice, 1}}).expect = Status::kOnDevice;
  b.Put(0, 0, kMemory, kDevice + 65535, 2).expect = Status::kOutOfRange;
  b.Put(0, 1, kMemory, kDevice, 4).expect = Status::kWrongKey;  // the other's window
  // Bytes stay when the region goes; then others may have them.
  a.At(4 * kLater);
  WindowOperation gone;
  gone.op = WindowOp::kDeregister;
  gone.address = kDevice;
  a.Do(gone);
  gone.address = kDevice + (1 << 20);
  a.Do(gone);
  other.At(5 * kLater);
  other.RegisterDevice(kDevice + (1 << 20), 100, 0, 50, 1);
  other.Expect(kDevice + (1 << 20), Pattern(100, 9), 1);
  const RunResult result =
      PlayPrograms(Machine(DrawerWith({{.port = 0, .bytes = 100'000}}), {a, other, b}));
  for (const auto& program : result.window_programs)
    EXPECT_EQ(program.wrong, 0u) << program.name << program.problem;
}

TEST(PcieTest, MachinesThatCannotBeAreRefused) {
  const auto why = [](std::vector<PcieDevice> devices) {
    return std::string(Topology::Create(DrawerWith(std::move(devices))).status().message());
  };
  EXPECT_EQ(why({{.port = 2, .lanes = 16}}), "") << "works with the eight lanes of the port";
  EXPECT_THAT(why({{.port = 3}}),
              HasSubstr("PCI Express port 3 of sn0-d0-h0 does not exist; a hub has 0..2"));
  EXPECT_THAT(why({{.port = 0, .lanes = 2}}),
              HasSubstr("a device of 2 lanes; write 1, 4, 8 or 16"));
  EXPECT_THAT(why({{.port = 0}, {.port = 0, .lanes = 4}}),
              HasSubstr("has a device already; a port takes only one"));
  EXPECT_THAT(why({{.port = 0, .bytes = 0}}), HasSubstr("a device of 0 bytes"));
  EXPECT_THAT(why({{.port = 0, .bytes = PcieDevice::kBytesMax + 1}}),
              HasSubstr("bytes; write 1 to 68719476736"));
  EXPECT_THAT(why({{.port = 0, .latency = PcieDevice::kLatencyMax + 1}}),
              HasSubstr("a latency of"));
  EXPECT_THAT(why({{.hub = 4, .port = 0}}), HasSubstr("which is not a hub"));
}

}  // namespace
}  // namespace percs
