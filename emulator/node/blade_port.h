// Network adapter of a Cell blade between its main memory and its network side: what a PPE sends
// goes out of main memory as one message, what arrives is put into main memory packet by packet.
//
// Not modelled: the I/O interface between adapter and memory; it takes no time beyond the HFI's.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "emulator/cell/blade.h"
#include "emulator/workload/hub_workload.h"

namespace percs {

class BladePort : public HubWorkload {
 public:
  // `inner`: what else the node does on the network; may be null.
  BladePort(HubServices& network, cell::Blade& blade, std::unique_ptr<HubWorkload> inner)
      : network_(network), blade_(blade), inner_(std::move(inner)) {}

  // Messages of `peer` go to `inbox`, the even-numbered ones; the others `slot_bytes` behind it.
  // Numbers count from 0 in each direction.
  void Receive(NodeId peer, cell::EffectiveAddress inbox, std::uint64_t slot_bytes) {
    flows_[peer] = {inbox, slot_bytes};
  }

  // --- For programs, at the blade's now.
  std::uint64_t sent(NodeId peer) const { return flows_.at(peer).sent; }
  std::uint64_t arrived(NodeId peer) const { return flows_.at(peer).arrived; }
  bool failed(NodeId peer) const { return flows_.at(peer).failed; }  // a message to it was given up
  cell::EffectiveAddress Slot(NodeId peer, std::uint64_t message) const {
    const Flow& flow = flows_.at(peer);
    return flow.inbox + message % 2 * flow.slot_bytes;
  }
  // PPE 0 gets an event for every message that arrives or is given up.
  void Send(NodeId peer, cell::EffectiveAddress from, std::uint64_t bytes);

  // HubWorkload
  void Start() override {
    if (inner_) inner_->Start();
  }
  void OnTimer(std::uint64_t token) override;
  void OnRawDelivered(const PacketHeader& header) override {
    if (inner_) inner_->OnRawDelivered(header);
  }
  bool takes_payload() const override { return true; }
  void OnPayload(const PacketHeader& header) override;
  void OnMessage(const DeliveredMessage& message) override;
  void OnMessageDone(NodeId destination, std::uint32_t message, bool delivered) override;
  void OnBacklogShrunk() override {
    if (inner_) inner_->OnBacklogShrunk();
  }
  void Stop() override {
    if (inner_) inner_->Stop();
  }

 private:
  struct Flow {
    cell::EffectiveAddress inbox = 0;
    std::uint64_t slot_bytes = 0;
    std::uint64_t sent = 0, arrived = 0;
    bool failed = false;
  };
  void Tell(NodeId peer) { blade_.Post(0, peer, network_.context().now); }

  HubServices& network_;
  cell::Blade& blade_;
  std::unique_ptr<HubWorkload> inner_;
  std::map<NodeId, Flow> flows_;
  std::vector<MessageRequest> requests_;  // of this instant
};

}  // namespace percs
