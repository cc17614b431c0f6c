// A daemon's side of Sync: joins the controller and keeps the session with it, over as many
// connections as it takes, until the controller is gone for good.
//
// THREAD: guarded by the process's lock.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "daemon/stream/endpoint.h"
#include "daemon/sync/sync_transport.h"

namespace percs {

struct SyncClientOptions {
  std::string controller;        // address, for people
  Credentials credentials = {};  // of this process
  std::optional<std::uint32_t> place;
  std::string name;
  std::string link_address;
  std::string metrics_address;  // "": it serves none
  std::uint64_t incarnation = 0;
  std::uint32_t pid = 0;
  bool spare = false;                         // waits while all places are taken
  std::chrono::milliseconds timeout{10'000};  // without the controller
};

class SyncClient final : public Endpoint<v1::DaemonMessage, v1::ControllerMessage> {
 public:
  struct Events {
    std::function<void()> joined;
    std::function<absl::Status(v1::ControllerMessage&)> message;
    std::function<void(const absl::Status&)> gone;  // refused, or away for too long
    std::function<void(bool)> reached;  // whether there is a session, whenever that changes
  };
  SyncClient(ProcessLock* lock, std::unique_ptr<SyncTransport> transport, SyncClientOptions options,
             Events events);

  void Start();
  void Stop();
  std::uint32_t process() const { return process_; }
  std::uint64_t fabric() const { return fabric_; }

 private:
  void Join();
  void OnJoinReply(const absl::Status& status, const v1::JoinReply& reply);
  void WaitForPlace(const std::string& why);
  void Dial();
  void RetryOrGiveUp(const absl::Status& status);
  void Away();

  void FillHello(v1::SessionHello* hello) const override;
  absl::Status CheckHello(const v1::SessionHello& hello) const override;
  absl::Status OnMessage(v1::ControllerMessage& message) override {
    return events_.message(message);
  }
  void OnReached() override;
  void OnLost(const absl::Status& status) override { RetryOrGiveUp(status); }

  WallClock& clock_;
  const std::unique_ptr<SyncTransport> transport_;
  const SyncClientOptions options_;
  Events events_;
  Timer retry_, give_up_;
  WallClock::Point away_since_;
  bool joined_ = false, stopped_ = false, watching_ = false;
  std::string waiting_for_;  // a place: why there is none
  std::chrono::milliseconds ask_again_after_{0};
  std::string last_answer_;  // of a controller that refused; "" if none answered
  std::uint32_t process_ = 0;
  std::uint64_t fabric_ = 0;
};

}  // namespace percs
