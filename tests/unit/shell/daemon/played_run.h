// A controller's run whose daemon is played by the test.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "daemon/controller/fabric_run.h"

namespace percs::test {

// A way to daemons that only keeps what was sent.
class SentMessages : public DaemonPort {
 public:
  std::unique_ptr<v1::ControllerMessage> Prepare(std::uint32_t) override {
    return std::make_unique<v1::ControllerMessage>();
  }
  void Send(std::uint32_t, std::unique_ptr<v1::ControllerMessage> message) override {
    messages.push_back(*message);
  }
  v1::Peer Describe(std::uint32_t) const override { return {}; }
  bool Present(std::uint32_t) const override { return true; }
  std::vector<v1::ControllerMessage> messages;
};

// Run 7: two hubs in one daemon.
class PlayedRunTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kRun = 7;
  // Up to where the daemon is ready and has nothing to do.
  void Apply(v1::ApplyRequest request,
             FabricRun::Events events = {[](const absl::Status&) {}, [] {}}) {
    request.mutable_scenario()->mutable_topology()->set_drawers(1);
    request.mutable_scenario()->mutable_topology()->set_hubs(2);
    auto run = FabricRun::Create(kRun, request, 1, &lock_, &port_, std::move(events));
    ASSERT_TRUE(run.ok()) << run.status();
    run_ = *std::move(run);
    run_->Configure();
    v1::DaemonMessage ready;
    ready.mutable_ready()->set_run(kRun);
    ready.mutable_ready()->mutable_report()->set_next_event(kNever);
    run_->OnMessage(0, ready);
  }

  ProcessLock lock_;
  LockGuard guard_{lock_.mutex()};
  SentMessages port_;
  std::unique_ptr<FabricRun> run_;
};

}  // namespace percs::test
