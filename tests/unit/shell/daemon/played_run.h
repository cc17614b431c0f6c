// A controller's run whose daemon is played by the test.
#pragma once

#include <grpcpp/alarm.h>
#include <gtest/gtest.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/controller/run/fabric_run.h"

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
  v1::Peer Describe(std::uint32_t process) const override {
    v1::Peer peer;
    peer.set_process(process);
    peer.set_name("d" + std::to_string(process));
    return peer;
  }
  bool Present(std::uint32_t process) const override { return absent != process; }
  bool Connected(std::uint32_t process) const override { return cut_off != process; }
  std::optional<std::string> Missing(std::uint32_t process) const override {
    return missing == process ? std::optional<std::string>("d, which is away") : std::nullopt;
  }
  std::optional<std::uint32_t> missing;  // process that says nothing
  std::optional<std::uint32_t> cut_off;  // process without a connection
  std::optional<std::uint32_t> absent;   // process that is gone, with no other in its place
  std::vector<v1::ControllerMessage> messages;
};

// Run 7: two hubs in one daemon, or in one each.
class PlayedRunTest : public ::testing::Test {
 protected:
  explicit PlayedRunTest(WallClock* clock = &WallClock::Real()) : lock_(clock) {}
  static constexpr std::uint64_t kRun = 7;
  static void OfTwoHubs(v1::ApplyRequest* request) {
    request->mutable_scenario()->mutable_topology()->set_drawers(1);
    request->mutable_scenario()->mutable_topology()->set_hubs(2);
  }
  // Up to where the daemons are ready. The first has something to do at `next`, or nothing.
  void Apply(v1::ApplyRequest request,
             FabricRun::Events events = {[](const absl::Status&) {}, [] {}},
             std::uint32_t daemons = 1, Time next = kNever) {
    OfTwoHubs(&request);
    auto run = FabricRun::Create(kRun, request, daemons, &lock_, &port_, std::move(events));
    ASSERT_TRUE(run.ok()) << run.status();
    run_ = *std::move(run);
    run_->Configure();
    for (std::uint32_t process = 0; process < daemons; ++process) {
      v1::DaemonMessage ready;
      ready.mutable_ready()->set_run(kRun);
      if (process == 0) ready.mutable_ready()->mutable_report()->set_unfinished(next < kNever);
      ready.mutable_ready()->mutable_report()->set_next_event(process == 0 ? next : kNever);
      run_->OnMessage(process, ready);
    }
  }

  void Hear(std::uint32_t process, v1::DaemonMessage message) { run_->OnMessage(process, message); }

  ~PlayedRunTest() override {
    run_.reset();
    guard_.unlock();
    lock_.WaitForNone();  // timers
  }

  grpc::Alarm
      keeps_grpc_;  // else the last timer waits for its own callback, which waits for the lock
  ProcessLock lock_;
  std::unique_lock<ProcessMutex> guard_{lock_.mutex()};
  SentMessages port_;
  std::unique_ptr<FabricRun> run_;
};

}  // namespace percs::test
