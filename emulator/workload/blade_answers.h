// A hub that blades exchange messages with: besides its own workload it answers every message of a
// blade with one of the same size.
#pragma once

#include <memory>
#include <utility>

#include "emulator/workload/hub_workload.h"

namespace percs {

class BladeAnswers : public HubWorkload {
 public:
  // `inner` may be null.
  BladeAnswers(const Topology& topology, HubServices& hub, std::unique_ptr<HubWorkload> inner)
      : topology_(topology), hub_(hub), inner_(std::move(inner)) {}

  void Start() override {
    if (inner_) inner_->Start();
  }
  void OnTimer(std::uint64_t token) override { inner_->OnTimer(token); }
  void OnRawDelivered(const PacketHeader& header) override {
    if (inner_) inner_->OnRawDelivered(header);
  }
  void OnMessage(const DeliveredMessage& message) override {
    if (topology_.is_blade(message.source)) {
      MessageRequest answer;
      answer.destination = message.source;
      answer.source_window = message.destination_window;
      answer.destination_window = message.source_window;
      answer.bytes = message.bytes;
      answer.verified = true;
      hub_.SendMessage(answer);
    } else if (inner_) {
      inner_->OnMessage(message);
    }
  }
  bool takes_payload() const override { return inner_ && inner_->takes_payload(); }
  void OnPayload(const PacketHeader& header) override {
    if (!topology_.is_blade(header.source)) inner_->OnPayload(header);
  }
  void OnArrived() override { inner_->OnArrived(); }
  // Then those of blades are checked by the blades alone, when they get theirs.
  bool checks_payload() const override { return inner_ && inner_->checks_payload(); }
  void OnMessageDone(NodeId destination, std::uint32_t message, bool delivered) override {
    if (inner_ && !topology_.is_blade(destination)) {
      inner_->OnMessageDone(destination, message, delivered);
    }
  }
  void OnBacklogShrunk() override {
    if (inner_) inner_->OnBacklogShrunk();
  }
  void Stop() override {
    if (inner_) inner_->Stop();
  }
  std::vector<RankResult> ranks() const override {
    return inner_ ? inner_->ranks() : std::vector<RankResult>();
  }
  RankLog* rank_log() override { return inner_ ? inner_->rank_log() : nullptr; }
  CollectiveResult collective() const override {
    return inner_ ? inner_->collective() : CollectiveResult();
  }
  std::vector<CauTaskResult> cau_tasks() const override {
    return inner_ ? inner_->cau_tasks() : std::vector<CauTaskResult>();
  }
  std::vector<WindowProgramResult> window_programs() const override {
    return inner_ ? inner_->window_programs() : std::vector<WindowProgramResult>();
  }
  std::vector<std::string> Blocked() const override {
    return inner_ ? inner_->Blocked() : std::vector<std::string>();
  }

 private:
  const Topology& topology_;
  HubServices& hub_;
  std::unique_ptr<HubWorkload> inner_;
};

}  // namespace percs
