// Synthetic traffic of a hub beside its workload: what a collective meets on a machine that others
// use, too.
#pragma once

#include <memory>
#include <utility>

#include "emulator/workload/hub_workload.h"

namespace percs {

// Above every token of a workload that it may go beside; the event queue keeps 40 bits of one.
inline constexpr std::uint64_t kBackgroundToken = std::uint64_t{1} << 39;

// INVALID_ARGUMENT unless nothing that reaches a hub could belong to either: only workloads of CAUs
// leave all messages to the background; beside collectives and traces it sends raw packets without
// content.
absl::Status CheckBackground(const Scenario& scenario);

class Background final : public HubWorkload {
 public:
  // `traffic` sets its timers with kBackgroundToken.
  Background(std::unique_ptr<HubWorkload> own, std::unique_ptr<HubWorkload> traffic,
             bool takes_messages)
      : own_(std::move(own)), traffic_(std::move(traffic)), takes_messages_(takes_messages) {}

  void Start() override {
    own_->Start();
    traffic_->Start();
  }
  void OnTimer(std::uint64_t token) override {
    (token == kBackgroundToken ? *traffic_ : *own_).OnTimer(token);
  }
  void OnRawDelivered(const PacketHeader& header) override { traffic_->OnRawDelivered(header); }
  void OnMessage(const DeliveredMessage& message) override {
    (takes_messages_ ? *traffic_ : *own_).OnMessage(message);
  }
  void OnMessageDone(NodeId destination, std::uint32_t message, bool delivered) override {
    (takes_messages_ ? *traffic_ : *own_).OnMessageDone(destination, message, delivered);
  }
  bool takes_payload() const override { return own_->takes_payload(); }
  void OnPayload(const PacketHeader& header) override { own_->OnPayload(header); }
  void OnArrived() override { own_->OnArrived(); }
  bool checks_payload() const override { return own_->checks_payload(); }
  void OnBacklogShrunk() override {
    own_->OnBacklogShrunk();
    traffic_->OnBacklogShrunk();
  }
  void Stop() override {
    own_->Stop();
    traffic_->Stop();
  }
  std::vector<RankResult> ranks() const override { return own_->ranks(); }
  RankLog* rank_log() override { return own_->rank_log(); }
  CollectiveResult collective() const override { return own_->collective(); }
  std::vector<CauTaskResult> cau_tasks() const override { return own_->cau_tasks(); }
  std::vector<std::string> Blocked() const override { return own_->Blocked(); }

 private:
  std::unique_ptr<HubWorkload> own_, traffic_;
  const bool takes_messages_;
};

}  // namespace percs
