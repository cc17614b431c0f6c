// A window that takes long to compute. Method: a host without peers, whose clock the test moves
// and whose slices the test runs; what it reports is compared with what one slice gives.
#include "daemon/node/host.h"

#include <gtest/gtest.h>

#include "tests/unit/shell/daemon/played_run.h"

namespace percs {
namespace {

class HostSliceTest : public test::PlayedRunTest {
 protected:
  static constexpr Time kEnd = 200 * kMicrosecond;

  HostSliceTest() {
    v1::ApplyRequest request;
    auto* pattern = request.mutable_scenario()->mutable_workload()->mutable_pattern();
    pattern->set_pattern(v1::PATTERN_UNIFORM);
    pattern->set_load(0.2);
    // A window is no longer than what crosses between hubs takes: flits, and management's messages.
    auto* parameters = request.mutable_scenario()->mutable_parameters();
    parameters->mutable_ll()->set_wire(kEnd);
    parameters->set_management_preset(v1::MANAGEMENT_PRESET_MACHINE);
    Apply(std::move(request));
    configure_ = port_.messages.front().configure();
  }
  // With a clock that passes by so much each time somebody looks.
  std::unique_ptr<Host> Start(std::chrono::milliseconds look) {
    Host::Events events;
    events.prepare = [] { return std::make_unique<v1::DaemonMessage>(); };
    events.send = [this](std::unique_ptr<v1::DaemonMessage> m) { sent_.push_back(*m); };
    events.later = [this](std::function<void()> then) { later_ = std::move(then); };
    events.now = [this, look] { return clock_ += look; };
    auto host = std::make_unique<Host>(&mesh_, &programs_, std::move(events), nullptr);
    sent_.clear();
    host->Configure(configure_, {});
    EXPECT_TRUE(sent_.size() == 1 && sent_[0].has_ready()) << sent_.size();
    v1::WindowGrant grant;
    grant.set_end(kEnd);
    sent_.clear();
    host->Grant(&grant);
    return host;
  }

  v1::Configure configure_;
  LinkMesh mesh_{&lock_, {[] {}, [](const absl::Status&) {}, nullptr}};
  Programs programs_{&lock_, {[] { return true; }, nullptr, nullptr, nullptr}};
  Host::Clock::time_point clock_{};
  std::vector<v1::DaemonMessage> sent_;
  std::function<void()> later_;
};

TEST_F(HostSliceTest, ALongWindowIsComputedInSlicesWithTheSameReport) {
  auto host = Start(std::chrono::milliseconds(0));
  ASSERT_EQ(sent_.size(), 1u);
  ASSERT_EQ(later_, nullptr) << "one slice";
  const std::string expected = sent_[0].report().SerializeAsString();
  EXPECT_GE(sent_[0].report().flits_moved(), 80u);  // all that the credits of two links allow
  host->Drop();

  host = Start(std::chrono::milliseconds(60));
  int slices = 1;
  for (; sent_.empty(); ++slices) {
    ASSERT_NE(later_, nullptr);
    std::exchange(later_, nullptr)();
  }
  EXPECT_GT(slices, 50);
  EXPECT_EQ(sent_[0].report().SerializeAsString(), expected);
  host->Drop();
}

TEST_F(HostSliceTest, BetweenSlicesItCanBeDroppedAndGrantedNothing) {
  const auto host = Start(std::chrono::milliseconds(60));
  ASSERT_TRUE(sent_.empty());
  host->Drop();
  later_();
  EXPECT_TRUE(sent_.empty()) << "of a run that is no more nothing is computed";
  const auto other = Start(std::chrono::milliseconds(60));
  v1::WindowGrant grant;
  grant.set_end(2 * kEnd);
  other->Grant(&grant);
  ASSERT_EQ(sent_.size(), 1u);
  EXPECT_TRUE(sent_[0].has_failure()) << "the first window is not reported yet";
}

TEST_F(HostSliceTest, ACommandThatHubsDoNotCarryOutIsRefused) {
  v1::WindowGrant grant;
  grant.set_end(2 * kEnd);
  grant.add_commands()->mutable_trace();
  const auto host = Start(std::chrono::milliseconds(0));
  sent_.clear();
  host->Grant(&grant);
  ASSERT_EQ(sent_.size(), 1u);
  EXPECT_TRUE(sent_[0].has_report()) << "hubs follow packets";
  grant.set_end(3 * kEnd);
  grant.clear_commands();
  grant.add_commands()->set_reset_faults(true);
  sent_.clear();
  host->Grant(&grant);
  ASSERT_EQ(sent_.size(), 1u);
  EXPECT_TRUE(sent_[0].has_failure()) << "network management has the faults";
}

TEST_F(HostSliceTest, WhatComesBetweenSlicesIsAnsweredAfterTheReport) {
  const auto host = Start(std::chrono::milliseconds(60));
  v1::Collect collect;
  collect.set_what(v1::Collect::WHAT_SNAPSHOT);
  host->Collect(collect);
  while (sent_.empty()) std::exchange(later_, nullptr)();
  ASSERT_EQ(sent_.size(), 2u);
  EXPECT_TRUE(sent_[0].has_report());
  EXPECT_TRUE(sent_[1].has_snapshot());
  host->Drop();
}

TEST_F(HostSliceTest, ALongAnswerIsSentInSlicesAndTheNextWindowWaitsForIt) {
  v1::Collect collect;
  collect.set_what(v1::Collect::WHAT_SNAPSHOT);
  const auto answer = [&] {
    v1::Snapshot all;
    for (const v1::DaemonMessage& message : sent_) {
      EXPECT_TRUE(message.has_snapshot());
      EXPECT_EQ(message.snapshot().more(), &message != &sent_.back());
      all.mutable_nodes()->MergeFrom(message.snapshot().nodes());
    }
    return all.SerializeAsString();
  };
  auto host = Start(std::chrono::milliseconds(0));
  sent_.clear();
  host->Collect(collect);
  ASSERT_EQ(sent_.size(), 1u) << "one slice";
  ASSERT_EQ(sent_[0].snapshot().nodes_size(), 2);
  const std::string expected = answer();
  host->Drop();

  host = Start(std::chrono::milliseconds(150));
  while (sent_.empty()) std::exchange(later_, nullptr)();
  sent_.clear();
  host->Collect(collect);
  EXPECT_EQ(sent_.size(), 1u);
  v1::WindowGrant grant;
  grant.set_end(2 * kEnd);
  host->Grant(&grant);
  while (sent_.back().has_snapshot() && sent_.back().snapshot().more()) {
    ASSERT_NE(later_, nullptr);
    std::exchange(later_, nullptr)();
  }
  EXPECT_EQ(sent_.size(), 2u);
  EXPECT_EQ(answer(), expected);
  sent_.clear();
  while (sent_.empty()) std::exchange(later_, nullptr)();
  EXPECT_TRUE(sent_[0].has_report());
  host->Drop();
}

TEST_F(HostSliceTest, ARunThatIsDroppedIsAskedNoMore) {
  const auto host = Start(std::chrono::milliseconds(150));
  while (sent_.empty()) std::exchange(later_, nullptr)();
  v1::Collect collect;
  collect.set_what(v1::Collect::WHAT_SNAPSHOT);
  host->Collect(collect);
  ASSERT_NE(later_, nullptr);
  host->Drop();
  sent_.clear();
  later_();
  EXPECT_TRUE(sent_.empty());
}

}  // namespace
}  // namespace percs
