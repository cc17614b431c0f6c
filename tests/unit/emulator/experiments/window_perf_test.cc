// Method: what perf measures on an idle machine against arithmetic with its parameters.
#include "emulator/experiments/window_perf.h"

#include <gtest/gtest.h>

namespace percs {
namespace {

// Two drawers of two supernodes: LL, LR and D links between the hubs asked for.
Scenario Machine() {
  Scenario scenario;
  scenario.topology = {2, 2, 4, 1};
  return scenario;
}

// One flit from the send queue of an HFI to the program's side of another: through the HFI port,
// over the link of `c`, out of the HFI port.
Time OneLink(const P7ihParameters& p, LinkClass c) {
  const LinkParameters& link = p.link(c);
  return p.hfi.flit_time + p.isr_latency + link.flit_time + link.wire + p.isr_latency +
         p.hfi.flit_time;
}

TEST(WindowPerf, LatencyIsTheSumOfTheParameters) {
  const Scenario machine = Machine();
  const P7ihParameters& p = machine.parameters;
  const WindowParameters& w = p.windows;
  const std::pair<NodeId, LinkClass> ways[] = {{1, LinkClass::kLl}, {4, LinkClass::kLr}};
  for (const auto& [to, link_class] : ways) {
    const Time link = OneLink(p, link_class);
    PerfOptions options;
    options.iterations = 3;
    options.format = PerfFormat::kImmediate;
    EXPECT_EQ(MeasurePoint(machine, 0, to, 8, options)->latency,
              w.immediate_issue + link + w.nmmu_hit + w.receive);
    options.format = PerfFormat::kFifo;
    EXPECT_EQ(MeasurePoint(machine, 0, to, 8, options)->latency,
              w.fifo_issue + w.nmmu_hit + w.memory_read + link + w.nmmu_hit + w.receive);
    options.format = PerfFormat::kRdma;
    EXPECT_EQ(
        MeasurePoint(machine, 0, to, 8, options)->latency,
        w.rdma_issue + w.nmmu_hit + w.memory_read + link + w.nmmu_hit + w.memory_write + w.receive);
  }
}

// Four messages of 1 MiB, one after the other at the rate of the window, and the way of the first
// and last packet and of the answer: docs/hfi.md adds it up.
TEST(WindowPerf, ARoundOfLongWritesIsTheSumOfTheParameters) {
  const Scenario machine = Machine();
  const P7ihParameters& p = machine.parameters;
  const WindowParameters& w = p.windows;
  PerfOptions options;
  options.iterations = 3;
  const std::uint64_t bytes = 1 << 20, messages = 4;
  const auto packets = static_cast<Time>(messages * bytes / 2048);
  const auto later_pages =
      static_cast<Time>(messages * (bytes / static_cast<std::uint64_t>(w.page_bytes) - 1));
  const Time link = OneLink(p, LinkClass::kLl);
  const Time round = w.rdma_issue + w.nmmu_hit + w.memory_read + (packets - 1) * 16 * w.flit_time +
                     later_pages * w.nmmu_hit + link + 2 * 15 * p.hfi.flit_time + w.nmmu_hit +
                     w.memory_write + link + w.receive;
  const double rate = static_cast<double>(messages * bytes) /
                      (static_cast<double>(round) / static_cast<double>(kSecond));
  EXPECT_DOUBLE_EQ(MeasurePoint(machine, 0, 1, bytes, options)->bandwidth, rate);
}

TEST(WindowPerf, BandwidthIsThatOfTheNarrowestPart) {
  PerfOptions options;
  options.iterations = 2;
  const std::uint64_t bytes = 1 << 20;
  const auto rate = [&](const Scenario& machine, NodeId to) {
    return MeasurePoint(machine, 0, to, bytes, options)->bandwidth / 1e9;
  };
  Scenario machine = Machine();
  EXPECT_NEAR(rate(machine, 1), 24, 24 * 0.03);  // LL, HFI port and window
  // LR: with the default buffers, of one packet, a single stream has 84 % of the rate for want of
  // credits.
  EXPECT_NEAR(rate(machine, 4), 0.84 * 5, 5 * 0.02);
  machine.parameters.lr.buffer_flits = 64;
  EXPECT_NEAR(rate(machine, 4), 5, 5 * 0.02);
  // D: two supernodes of eight hubs with one link between them.
  NodeId exit = 0, entry = 0;
  const Topology topology = *Topology::Create(machine.topology);
  for (const LinkEnd& end : topology.Links()) {
    if (topology.ClassOfLink(end) != LinkClass::kD) continue;
    exit = end.node;
    entry = topology.Peer(end.node, end.port).node;
  }
  EXPECT_NEAR(MeasurePoint(machine, exit, entry, bytes, options)->bandwidth / 1e9, 10, 10 * 0.02);
  machine.parameters.windows.flit_time = 42'667;  // 3 GB/s
  EXPECT_NEAR(rate(machine, 1), 3, 3 * 0.02);
}

TEST(WindowPerf, CurvesRiseAndBothWaysCarryMore) {
  const Scenario machine = Machine();
  PerfOptions options;
  options.iterations = 3;
  for (const PerfFormat format : {PerfFormat::kImmediate, PerfFormat::kFifo, PerfFormat::kRdma}) {
    options.format = format;
    PerfPoint before;
    for (std::uint64_t bytes = 8; bytes <= PerfBytesMax(format) && bytes <= 65536; bytes *= 8) {
      const auto point = MeasurePoint(machine, 0, 4, bytes, options);
      ASSERT_TRUE(point.ok()) << point.status();
      EXPECT_GE(point->latency, before.latency) << PerfFormatName(format) << " " << bytes;
      EXPECT_GE(point->bandwidth, before.bandwidth * 0.98)
          << PerfFormatName(format) << " " << bytes;
      // Small writes share an LR link with the answers and acknowledgements of those that come the
      // other way.
      EXPECT_GT(point->bidirectional, 1.15 * point->bandwidth)
          << PerfFormatName(format) << " " << bytes;
      before = *point;
    }
  }
}

TEST(WindowPerf, WhatCannotBeMeasuredIsRefused) {
  const Scenario machine = Machine();
  PerfOptions options;
  EXPECT_FALSE(MeasurePoint(machine, 0, 0, 8, options).ok());
  EXPECT_FALSE(MeasurePoint(machine, 0, 99, 8, options).ok());
  EXPECT_FALSE(MeasurePoint(machine, 0, 1, 0, options).ok());
  options.format = PerfFormat::kImmediate;
  EXPECT_FALSE(MeasurePoint(machine, 0, 1, 128, options).ok());
  EXPECT_EQ(PingWindows(machine, 0, 1, 64, 0, 0, PerfFormat::kFifo).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(PingWindows(machine, 0, 1, 64, 5, kMicrosecond, PerfFormat::kFifo)->size(), 5u);
}

}  // namespace
}  // namespace percs
