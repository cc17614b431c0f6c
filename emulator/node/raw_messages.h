// Raw messages on their way to the HFI. A long one is cut into packets piece by piece, as the send
// queues get shorter: so what it needs of memory does not grow with its length. Packets that the
// HFI drops, since they have no route, enter no queue: after some of them in one instant all
// messages wait, so what an instant needs of time is bounded (docs/semantics.md B.3).
#pragma once

#include <cstdint>
#include <optional>

#include "emulator/base/ids.h"
#include "emulator/base/ring.h"
#include "emulator/chip/node_context.h"
#include "emulator/hfi/hfi.h"
#include "emulator/packet/packet.h"

namespace percs {

struct RawMessage {
  NodeId destination = 0;
  WindowId source_window = 0, destination_window = 0;
  std::uint64_t bytes = 0;
  bool verified = false;
};

class RawMessages {
 public:
  static constexpr std::uint64_t kPieceBytes = std::uint64_t{4096} * kPacketBytesMax;
  // The next piece is cut when fewer packets wait in the send queues.
  static constexpr std::size_t kFewPackets = 128;

  // After as many packets that are dropped in one instant, messages wait.
  static constexpr std::uint64_t kDroppedMax = 128;

  RawMessages(NodeContext& context, Hfi* hfi) : context_(context), hfi_(hfi) {}

  // After what waits. `route`: null: as the workload's traffic is routed.
  void Send(const RawMessage& message, const RouteSetting* route) {
    if (rests_.empty() && !held_ && message.bytes <= kPieceBytes) [[likely]] {
      Cut(message, message.bytes, route ? *route : hfi_->route());
    } else {
      SendInPieces(message, route);
    }
  }
  // Something waits to be cut.
  bool waiting() const { return !rests_.empty(); }
  std::uint64_t waiting_packets() const { return waiting_packets_; }
  // The send queues have become shorter.
  void Continue();
  // The time in which W carries what was dropped is over.
  void OnTimer();

 private:
  struct Rest {
    RawMessage message;
    std::optional<RouteSetting> route;  // none: as the workload's traffic is routed
  };
  // The first `bytes` of it, as packets.
  void Cut(const RawMessage& message, std::uint64_t bytes, const RouteSetting& route);
  void CutPiece(Rest* rest);
  void SendInPieces(const RawMessage& message, const RouteSetting* route);
  void NoteDropped(int flits);
  void Hold();

  NodeContext& context_;
  Hfi* hfi_;
  Ring<Rest> rests_;
  std::uint64_t waiting_packets_ = 0;  // in rests_
  bool held_ = false;                  // until OnTimer
  Time dropped_at_ = -1;  // when the last packet was dropped, and what was dropped at that instant
  std::uint64_t dropped_packets_ = 0;
  std::int64_t dropped_flits_ = 0;
};

}  // namespace percs
