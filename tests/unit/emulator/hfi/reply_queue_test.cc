// The reply queue of docs/semantics.md rule 16. Method: the same reliable all-to-all with room for
// every acknowledgement and with room for one.
#include <gtest/gtest.h>

#include "emulator/sim/run.h"
#include "tests/support/fault_runs.h"

namespace percs {
namespace {

RunResult AllToAll(int reply_queue_packets) {
  Scenario scenario;
  scenario.topology = {.supernodes = 1, .drawers = 1, .hubs = 8};
  scenario.workload = AllToAllWorkload{131072, Schedule::kSpread, true, PayloadMode::kVerified};
  scenario.parameters.reply_queue_packets = reply_queue_packets;
  const auto result = RunScenario(scenario, {});
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *result : RunResult();
}

TEST(ReplyQueueTest, APacketThatFindsItFullIsDroppedAndSentAgain) {
  const RunResult result = AllToAll(1);
  EXPECT_GT(Dropped(result, DropReason::kNoReplySlot), 0u);
  EXPECT_GE(result.total.packets_resent, Dropped(result, DropReason::kNoReplySlot));
  EXPECT_EQ(result.total.messages_acknowledged, 8u * 7u);
  EXPECT_EQ(result.total.messages_delivered, 8u * 7u);
  EXPECT_EQ(result.total.payload_errors, 0u);
  EXPECT_TRUE(result.violations.empty()) << result.violations.front();
}

TEST(ReplyQueueTest, TheDefaultHasRoomForEveryAcknowledgement) {
  const RunResult result = AllToAll(P7ihParameters().reply_queue_packets);
  EXPECT_EQ(Dropped(result, DropReason::kNoReplySlot), 0u);
  EXPECT_EQ(result.total.packets_resent, 0u);
  EXPECT_EQ(result.total.messages_acknowledged, 8u * 7u);
}

}  // namespace
}  // namespace percs
