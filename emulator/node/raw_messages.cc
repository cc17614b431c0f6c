#include "emulator/node/raw_messages.h"

#include <algorithm>

namespace percs {
namespace {

std::uint64_t PacketsOf(const RawMessage& message) {
  return std::max<std::uint64_t>((message.bytes + kPacketBytesMax - 1) / kPacketBytesMax, 1);
}

}  // namespace

void RawMessages::Send(const RawMessage& message) {
  RawMessage rest = message;
  if (rests_.empty()) {
    CutPiece(&rest);
    if (rest.bytes == 0) return;
  }
  waiting_packets_ += PacketsOf(rest);
  rests_.push_back(rest);
  Continue();  // packets without a route do not wait, so no queue will become shorter
}

void RawMessages::Continue() {
  while (!rests_.empty() && hfi_->backlog() < kFewPackets) {
    RawMessage& rest = rests_.front();
    waiting_packets_ -= PacketsOf(rest);
    CutPiece(&rest);
    if (rest.bytes == 0) {
      rests_.pop_front();
    } else {
      waiting_packets_ += PacketsOf(rest);
    }
  }
}

void RawMessages::CutPiece(RawMessage* message) {
  std::uint64_t piece = std::min(message->bytes, kPieceBytes);
  message->bytes -= piece;
  do {
    Packet* p = hfi_->NewPacket();
    PacketHeader& header = p->header;
    header.destination = message->destination;
    header.source_window = message->source_window;
    header.destination_window = message->destination_window;
    header.bytes = static_cast<std::uint16_t>(std::min<std::uint64_t>(piece, kPacketBytesMax));
    piece -= header.bytes;
    hfi_->Send(p, message->verified, message->route ? *message->route : hfi_->route());
  } while (piece > 0);
}

}  // namespace percs
