// Method: a raw message longer than a piece, between two hubs: all of it arrives, whoever has the
// hubs, and only a piece of it and what was sent before is ever in memory.
#include "emulator/node/raw_messages.h"

#include <gtest/gtest.h>

#include "emulator/sim/run.h"
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

// The second message of hub 0 begins when its windows are down: nothing of it waits in a queue.
TEST(RawMessages, WhatIsDroppedAtOnceIsDroppedToItsEnd) {
  Scenario s = TwoHubs(3 * RawMessages::kPieceBytes);
  s.topology = {1, 1, 3, 1};
  for (const int hfi : {0, 1}) {
    FaultSpec down;
    down.id = hfi == 0 ? "first" : "second";
    down.kind = FaultKind::kHfiDown;
    down.select.in = {0};
    down.hfi = hfi;
    down.at = 0;
    s.faults.push_back(down);
  }
  const auto result = RunScenario(s, {});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->total.packets_created, 6 * 3 * kPiecePackets);
}

}  // namespace
}  // namespace percs
