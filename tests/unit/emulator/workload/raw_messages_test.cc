// Method: a raw message longer than a piece, between two hubs: all of it arrives, whoever has the
// hubs, and only a piece of it and what was sent before is ever in memory.
#include "emulator/node/raw_messages.h"

#include <gtest/gtest.h>

#include <memory>

#include "emulator/sim/run.h"
#include "emulator/workload/hub_workload.h"
#include "tests/support/split_run.h"

namespace percs {
namespace {

Scenario TwoHubs(std::uint64_t bytes) {
  Scenario s;
  s.topology = {1, 1, 2, 1};
  AllToAllWorkload w;
  w.bytes = bytes;
  w.reliable = false;
  s.workload = w;
  return s;
}

constexpr std::uint64_t kPiecePackets = RawMessages::kPieceBytes / kPacketBytesMax;

TEST(RawMessages, ALongOneArrivesWhole) {
  const Scenario s = TwoHubs(2 * RawMessages::kPieceBytes + 1);
  const auto result = RunScenario(s, {});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->total.packets_created, 2 * (2 * kPiecePackets + 1));
  EXPECT_EQ(result->total.packets_delivered, result->total.packets_created);
  const auto split = test::SplitRun(s, test::Processes(2));
  ASSERT_TRUE(split.ok()) << split.status();
  EXPECT_EQ(split->digest, result->digest);
}

TEST(RawMessages, OneOfAPieceIsCutAtOnce) {
  Scenario s = TwoHubs(RawMessages::kPieceBytes);
  s.stop_at = kMicrosecond;
  const auto result = RunScenario(s, {});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->total.packets_created, 2 * kPiecePackets);
}

TEST(RawMessages, TheNextPieceIsCutWhenFewPacketsWait) {
  Scenario s = TwoHubs(std::uint64_t{1} << 30);
  s.stop_at = kMicrosecond;
  const auto begun = RunScenario(s, {});
  ASSERT_TRUE(begun.ok()) << begun.status();
  EXPECT_EQ(begun->total.packets_created, 2 * kPiecePackets);
  // A piece needs about 8 MiB / 22 B/ns = 0.38 ms on the link between the two.
  s.stop_at = kMillisecond / 2;
  const auto later = RunScenario(s, {});
  ASSERT_TRUE(later.ok()) << later.status();
  EXPECT_EQ(later->total.packets_created, 4 * kPiecePackets);
}

// Takes all HFIs of `hubs` down, so that they drop what their workloads send.
void CutOff(const std::vector<NodeId>& hubs, Scenario* s) {
  for (const int hfi : {0, 1}) {
    FaultSpec down;
    down.id = hfi == 0 ? "first" : "second";
    down.kind = FaultKind::kHfiDown;
    down.select.in = hubs;
    down.hfi = hfi;
    down.at = 0;
    s->faults.push_back(down);
  }
}

// Hub 0 sends one after a microsecond.
class OneLater : public HubWorkload {
 public:
  explicit OneLater(HubServices& hub) : hub_(hub) {}
  void Start() override {
    if (hub_.context().node != 0) return;
    ++hub_.context().work->unfinished;
    hub_.SetTimer(kMicrosecond, 0);
  }
  void OnTimer(std::uint64_t) override {
    hub_.SendRaw(1, 0, 0, 3 * RawMessages::kPieceBytes, false, nullptr);
    --hub_.context().work->unfinished;
  }

 private:
  HubServices& hub_;
};

// Its windows are down by then: nothing of it waits in a queue that could become shorter.
TEST(RawMessages, WhatIsDroppedAtOnceIsDroppedToItsEnd) {
  Scenario s = TwoHubs(0);
  s.workload = OtherWorkload([](HubServices& hub) { return std::make_unique<OneLater>(hub); });
  CutOff({0}, &s);
  const auto result = RunScenario(s, {});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->total.packets_created, 3 * kPiecePackets);
  // Two pieces take W's time before the third is cut.
  EXPECT_EQ(result->virtual_time, kMicrosecond + 2 * static_cast<Time>(kPiecePackets) *
                                                     FlitsFor(kPacketBytesMax) *
                                                     s.parameters.w_flit_time);
}

// Both hubs send as fast as the HFI takes messages.
TEST(RawMessages, ASourceThatIsCutOffOffersWhatWCarries) {
  Scenario s;
  s.topology = {1, 1, 2, 1};
  PatternWorkload w;
  w.load = 0;
  w.count = 1'000'000'000;
  s.workload = w;
  CutOff({0, 1}, &s);
  s.stop_at = 10 * kMicrosecond;
  const auto result = RunScenario(s, {});
  ASSERT_TRUE(result.ok()) << result.status();
  const Time packet = FlitsFor(kPacketBytesMax) * s.parameters.w_flit_time;
  const auto carried = static_cast<std::uint64_t>(s.stop_at / packet);
  EXPECT_GT(result->total.packets_created, 2 * carried);
  EXPECT_LE(result->total.packets_created, 2 * (carried + 2 * RawMessages::kDroppedMax));
  const auto split = test::SplitRun(s, test::Processes(2));
  ASSERT_TRUE(split.ok()) << split.status();
  EXPECT_EQ(split->digest, result->digest);
}

}  // namespace
}  // namespace percs
