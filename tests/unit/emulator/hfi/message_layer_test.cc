// The message layer of docs/semantics.md rule 20. Method: hub 0 of two sends messages at given
// times; those to a window that is down over there are lost for good, so that each message's fate
// and the number of its retransmissions are known.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "emulator/scenario/link_settings.h"
#include "emulator/sim/run.h"
#include "emulator/workload/hub_workload.h"
#include "tests/support/fault_runs.h"

namespace percs {
namespace {

using testing::IsEmpty;

constexpr WindowId kUpWindow = 0, kDownWindow = 1;  // of hub 1

// From window 0 of hub 0 to hub 1.
struct TimedMessage {
  Time at = 0;
  WindowId to = kUpWindow;
  std::uint64_t bytes = 8;
  bool raw = false;  // as raw packets
};

class TimedMessages final : public HubWorkload {
 public:
  TimedMessages(HubServices& hub, const std::vector<TimedMessage>& messages)
      : hub_(hub), messages_(messages) {}
  void Start() override {
    if (hub_.context().node != 0) return;
    for (std::size_t i = 0; i < messages_.size(); ++i) {
      ++hub_.context().work->unfinished;
      hub_.SetTimer(messages_[i].at, i);
    }
  }
  void OnTimer(std::uint64_t token) override {
    --hub_.context().work->unfinished;
    const TimedMessage& message = messages_[token];
    if (message.raw) return hub_.SendRaw(1, 0, message.to, message.bytes, false, nullptr);
    MessageRequest request;
    request.destination = 1;
    request.destination_window = message.to;
    request.bytes = message.bytes;
    hub_.SendMessage(request);
  }

 private:
  HubServices& hub_;
  const std::vector<TimedMessage> messages_;
};

Scenario Sends(const std::vector<TimedMessage>& messages) {
  Scenario scenario;
  scenario.topology = {1, 1, 2, 1};
  scenario.workload = OtherWorkload([messages](HubServices& hub) -> std::unique_ptr<HubWorkload> {
    return std::make_unique<TimedMessages>(hub, messages);
  });
  FaultSpec down;
  down.id = "down";
  down.kind = FaultKind::kWindowDown;
  down.select.in = {1};
  down.window = kDownWindow;
  down.at = 0;
  scenario.faults = {down};
  scenario.reroute = false;
  scenario.parameters.retransmit_timeout = 10 * kUs;
  scenario.parameters.retransmit_tries = 1;  // given up 30 us after the first one
  return scenario;
}

RunResult ResultOfSends(const Scenario& scenario) {
  auto result = RunScenario(scenario, {});
  EXPECT_TRUE(result.ok()) << result.status();
  if (!result.ok()) return {};
  EXPECT_THAT(result->violations, IsEmpty());
  return *std::move(result);
}

TEST(MessageLayer, EverySixteenthPacketAndTheEndOfAMessageAreAcknowledged) {
  const auto acks = [](std::uint64_t packets) {
    const RunResult result = ResultOfSends(Sends({{0, kUpWindow, packets * 2048}}));
    EXPECT_EQ(result.total.packets_resent, 0u);
    return result.total.acks_sent;
  };
  EXPECT_EQ(acks(1), 1u);
  EXPECT_EQ(acks(16), 1u);
  EXPECT_EQ(acks(17), 2u);
  EXPECT_EQ(acks(33), 3u);
}

// The acknowledgement of the last message comes just after the one before it was given up. The
// receiver has it, but does not deliver it before it hears of that, so this does not count.
TEST(MessageLayer, AMessageBehindTheSecondThatIsGivenUpIsAskedForAgain) {
  const RunResult result = ResultOfSends(Sends(
      {{0, kDownWindow}, {40 * kUs, kUpWindow}, {50 * kUs, kDownWindow}, {80 * kUs, kUpWindow}}));
  EXPECT_EQ(result.total.messages_failed, 2u);
  EXPECT_EQ(result.total.messages_acknowledged, 2u);
  EXPECT_EQ(result.total.messages_delivered, 2u);
  EXPECT_EQ(result.total.packets_resent, 3u) << "each of the lost ones once, and the last one";
}

// Of three messages the first two are lost. The third has come, but its acknowledgement is so slow
// that it is sent again, and this copy waits in the HFI, behind raw packets of 17 us. When the copy
// leaves, the packet is held: the first message has been given up, the second has not. So nothing
// is sent again when the copy's time is over, but only when the second has been given up.
TEST(MessageLayer, ACopyOfAHeldPacketThatLeavesTheHfiStartsNoTry) {
  Scenario scenario = Sends({{0, kDownWindow},
                             {60 * kUs, kDownWindow},
                             {60 * kUs, kUpWindow},
                             {69'900 * kNanosecond, kUpWindow, 200 * 2048, true}});
  scenario.parameters.retransmit_tries = 2;    // given up 70 us after the first one
  scenario.parameters.ll.buffer_flits = 4096;  // credits are as slow as acknowledgements
  scenario.faults.push_back(SetLatency(50 * kUs, {1, 0}, 25 * kUs));
  scenario.faults.push_back(SetLatency(110 * kUs, {1, 0}, 0));
  const RunResult result = ResultOfSends(scenario);
  EXPECT_EQ(result.total.messages_failed, 2u);
  EXPECT_EQ(result.total.messages_delivered, 1u);
  EXPECT_EQ(result.total.messages_acknowledged, 1u);
  EXPECT_EQ(Dropped(result, DropReason::kWindowDown), 2 * 3u);
  EXPECT_EQ(result.total.packets_resent, 2 * 2 + 2u) << "the third: its copy, and when asked for";
}

}  // namespace
}  // namespace percs
