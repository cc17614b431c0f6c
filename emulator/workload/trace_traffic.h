// The ranks of a trace on one hub, connected to its message layer. A rank's window tells it apart
// on its hub, so a message needs no more than windows and tag.
#pragma once

#include "emulator/workload/hub_workload.h"
#include "emulator/workload/trace_replay.h"

namespace percs {

class TraceTraffic : public HubWorkload, private TraceActions {
 public:
  // INVALID_ARGUMENT if a hub would get more ranks than the windows it has.
  static absl::Status Check(const TraceWorkload& workload, const Topology& topology, int windows);
  // REQUIRES: Check.
  TraceTraffic(const TraceWorkload& workload, const Topology& topology, HubServices& hub);

  void Start() override;
  void OnTimer(std::uint64_t token) override;
  void OnMessage(const DeliveredMessage& message) override;
  std::optional<SendBound> NextSend() const override {
    return SendBound{replay_.NextSend(), hub_.context().parameters->send_overhead};
  }
  std::vector<RankResult> ranks() const override { return replay_.results(); }
  RankLog* rank_log() override { return &replay_.log(); }

 private:
  void SetTimer(Time at, std::uint64_t token) override { hub_.SetTimer(at, token); }
  void SendMessage(std::uint32_t source_rank, std::uint32_t destination_rank, std::uint32_t tag,
                   std::uint64_t bytes) override;
  // Windows of the ranks of a hub take HFIs and ports in turn.
  WindowId WindowOf(std::uint32_t rank) const;
  std::uint32_t RankAt(NodeId node, WindowId window) const;
  void NoteDone();

  const TraceWorkload& workload_;
  const Topology& topology_;
  HubServices& hub_;
  const std::uint32_t rank_count_;
  TraceReplay replay_;
  bool counted_ = false;
};

}  // namespace percs
