#include "emulator/node/raw_messages.h"

#include <algorithm>

namespace percs {
namespace {

std::uint64_t PacketsOf(const RawMessage& message) {
  return std::max<std::uint64_t>((message.bytes + kPacketBytesMax - 1) / kPacketBytesMax, 1);
}

}  // namespace

void RawMessages::SendInPieces(const RawMessage& message, const RouteSetting* route) {
  Rest rest{message, {}};
  if (route) rest.route = *route;
  if (rests_.empty() && !held_) CutPiece(&rest);
  waiting_packets_ += PacketsOf(rest.message);
  rests_.push_back(rest);
  Continue();  // packets without a route do not wait, so no queue will become shorter
}

void RawMessages::Continue() {
  while (!rests_.empty() && !held_ && hfi_->backlog() < kFewPackets) {
    Rest& rest = rests_.front();
    waiting_packets_ -= PacketsOf(rest.message);
    CutPiece(&rest);
    if (rest.message.bytes == 0) {
      rests_.pop_front();
    } else {
      waiting_packets_ += PacketsOf(rest.message);
    }
  }
}

void RawMessages::CutPiece(Rest* rest) {
  const std::uint64_t piece = std::min(rest->message.bytes, kPieceBytes);
  Cut(rest->message, piece, rest->route ? *rest->route : hfi_->route());
  rest->message.bytes -= piece;
}

void RawMessages::Cut(const RawMessage& message, std::uint64_t bytes, const RouteSetting& route) {
  do {
    Packet* p = hfi_->NewPacket();
    PacketHeader& header = p->header;
    header.destination = message.destination;
    header.source_window = message.source_window;
    header.destination_window = message.destination_window;
    header.bytes = static_cast<std::uint16_t>(std::min<std::uint64_t>(bytes, kPacketBytesMax));
    bytes -= header.bytes;
    const int flits = FlitsFor(header.bytes);
    if (!hfi_->Send(p, message.verified, route)) [[unlikely]]
      NoteDropped(flits);
  } while (bytes > 0);
  if (dropped_packets_ >= kDroppedMax && dropped_at_ == context_.now && !held_) [[unlikely]]
    Hold();
}

void RawMessages::NoteDropped(int flits) {
  if (dropped_at_ != context_.now) {
    dropped_at_ = context_.now;
    dropped_packets_ = 0;
    dropped_flits_ = 0;
  }
  ++dropped_packets_;
  dropped_flits_ += flits;
}

// Without it a source that is cut off would offer all it has in one instant.
void RawMessages::Hold() {
  held_ = true;
  ++context_.work->unfinished;
  context_.queue.Push(context_.now + dropped_flits_ * context_.parameters->w_flit_time,
                      EventKey(EventClass::kHfi, kRawMessages, 0, 0), 0);
}

void RawMessages::OnTimer() {
  held_ = false;
  --context_.work->unfinished;
  Continue();
}

}  // namespace percs
