// How virtual time waits for programs outside, and when what they ask for takes effect. Method: a
// run whose daemon is played by the test; every grant is looked at.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "proto/convert/node_result.h"
#include "proto/window/endpoint_codec.h"
#include "tests/unit/shell/daemon/played_run.h"

namespace percs {
namespace {

class EndpointRunTest : public test::PlayedRunTest {
 protected:
  void Apply(std::uint32_t wait_endpoints,
             FabricRun::Events events = {[](const absl::Status&) {}, [] {}}) {
    v1::ApplyRequest request;
    request.set_wait_endpoints(wait_endpoints);
    PlayedRunTest::Apply(request, std::move(events));
    port_.messages.clear();
  }
  static v1::DaemonMessage Programs(std::uint32_t attached, std::uint32_t owing,
                                    std::uint64_t arrived) {
    v1::DaemonMessage message;
    v1::EndpointReport* report = message.mutable_endpoints();
    report->set_run(kRun);
    report->set_attached(attached);
    report->set_owing(owing);
    report->set_arrived(arrived);
    return message;
  }
  static v1::EndpointSubmission* Ask(v1::DaemonMessage* message, std::uint64_t number, NodeId node,
                                     WindowId window) {
    v1::EndpointSubmission* submission = message->mutable_endpoints()->add_submissions();
    submission->set_number(number);
    submission->set_node(node);
    submission->set_window(window);
    submission->set_program(number);
    WindowOperation operation;
    operation.op = WindowOp::kReserve;
    OperationToProto(operation, submission->add_operations());
    return submission;
  }
  // The daemon has run its window; the next event is at `next`.
  static void Report(v1::DaemonMessage* message, Time next) {
    message->mutable_report()->set_next_event(next);
  }
  // The one grant that was sent since the last look.
  v1::WindowGrant Grant() {
    EXPECT_EQ(port_.messages.size(), 1u);
    const v1::WindowGrant grant =
        port_.messages.empty() ? v1::WindowGrant() : port_.messages.back().grant();
    port_.messages.clear();
    return grant;
  }
  std::vector<std::uint64_t> Numbers(const v1::WindowGrant& grant) {
    std::vector<std::uint64_t> numbers;
    for (const v1::EndpointGrant& g : grant.endpoints()) numbers.push_back(g.number());
    return numbers;
  }
};

TEST_F(EndpointRunTest, VirtualTimeBeginsWhenAllAreThereAndTheRunEndsWithTheLast) {
  Apply(2);
  EXPECT_EQ(run_->state(), v1::FABRIC_STATE_IDLE);
  v1::DaemonMessage first = Programs(1, 0, 1);
  Ask(&first, 1, 1, 5);
  run_->OnMessage(0, first);
  EXPECT_TRUE(port_.messages.empty()) << "one is missing";
  EXPECT_EQ(run_->programs().awaited, 1u);
  v1::DaemonMessage second = Programs(2, 0, 2);
  Ask(&second, 2, 0, 3);
  run_->OnMessage(0, second);
  const v1::WindowGrant grant = Grant();
  EXPECT_EQ(Numbers(grant), (std::vector<std::uint64_t>{2, 1})) << "by hub, not by who came first";
  for (const v1::EndpointGrant& g : grant.endpoints()) EXPECT_EQ(g.at(), 0);
  v1::DaemonMessage idle = Programs(2, 0, 2);
  Report(&idle, kNever);
  run_->OnMessage(0, idle);
  EXPECT_TRUE(port_.messages.empty());
  EXPECT_EQ(run_->state(), v1::FABRIC_STATE_IDLE) << "they may still ask for something";
  v1::DaemonMessage gone = Programs(0, 0, 2);
  run_->OnMessage(0, gone);
  ASSERT_EQ(port_.messages.size(), 1u);
  EXPECT_TRUE(port_.messages.back().has_collect()) << "the last one has detached";
}

TEST_F(EndpointRunTest, VirtualTimeStandsWhileAProgramOwesItsNextCall) {
  Apply(1);
  v1::DaemonMessage attach = Programs(1, 0, 1);
  Ask(&attach, 1, 0, 0);
  run_->OnMessage(0, attach);
  const Time end = Grant().end();
  v1::DaemonMessage told = Programs(1, 1, 1);
  Report(&told, end + kMicrosecond);
  run_->OnMessage(0, told);
  EXPECT_TRUE(port_.messages.empty()) << "though there is an event";
  EXPECT_EQ(run_->programs().owing, 1u);
  v1::DaemonMessage asks = Programs(1, 1, 1);
  Ask(&asks, 2, 0, 0);
  run_->OnMessage(0, asks);
  EXPECT_TRUE(port_.messages.empty()) << "it may ask for more";
  v1::DaemonMessage waits = Programs(1, 0, 1);
  Ask(&waits, 3, 1, 0);
  run_->OnMessage(0, waits);
  const v1::WindowGrant grant = Grant();
  EXPECT_EQ(Numbers(grant), (std::vector<std::uint64_t>{2, 3}));
  EXPECT_EQ(grant.endpoints(0).at(), end) << "what it did took no virtual time";
}

TEST_F(EndpointRunTest, StopWaitsForNobody) {
  Apply(3);
  v1::JournalRecord stop;
  stop.set_stop(true);
  run_->Act(stop, nullptr, [](absl::StatusOr<Time> at) { EXPECT_TRUE(at.ok()) << at.status(); });
  ASSERT_EQ(port_.messages.size(), 1u);
  ASSERT_EQ(port_.messages.back().grant().commands_size(), 1);
  EXPECT_TRUE(port_.messages.back().grant().commands(0).stop());
  v1::DaemonMessage done;
  Report(&done, kNever);
  run_->OnMessage(0, done);
  EXPECT_TRUE(port_.messages.back().has_collect());
}

TEST_F(EndpointRunTest, WhatCannotBeJournalledIsRefusedAndTheRunGoesOn) {
  FabricRun::Events events{[](const absl::Status&) {}, [] {}};
  bool full = true;
  std::vector<v1::JournalRecord> journal;
  events.record = [&](const std::vector<v1::JournalRecord>& records) -> absl::Status {
    if (full) return absl::ResourceExhaustedError("the journal is full");
    journal.insert(journal.end(), records.begin(), records.end());
    return absl::OkStatus();
  };
  Apply(1, events);
  v1::DaemonMessage attach = Programs(1, 0, 1);
  Ask(&attach, 1, 0, 0);
  Report(&attach, kNever);
  run_->OnMessage(0, attach);
  ASSERT_EQ(port_.messages.size(), 1u);
  EXPECT_EQ(port_.messages.back().endpoint_refused().number(), 1u);
  EXPECT_EQ(port_.messages.back().endpoint_refused().code(),
            static_cast<std::uint32_t>(absl::StatusCode::kResourceExhausted));
  port_.messages.clear();
  full = false;
  v1::DaemonMessage again = Programs(1, 0, 2);
  Ask(&again, 1, 0, 0);  // sent again after a break: refused is refused
  Ask(&again, 2, 0, 0);
  Report(&again, kNever);
  run_->OnMessage(0, again);
  EXPECT_EQ(Numbers(Grant()), std::vector<std::uint64_t>{2});
  ASSERT_EQ(journal.size(), 1u);
  EXPECT_EQ(journal[0].endpoint().process(), 0u);
  EXPECT_TRUE(journal[0].endpoint().has_process());
}

}  // namespace
}  // namespace percs
