// Immediate send and FIFO send/receive (paper 000 section IV-B): one packet each, unreliable as the
// hardware's. A packet for a full receive FIFO is dropped, as the hardware's counters of dropped
// packets suggest (choice): it would otherwise stand in the way of all others that come through its
// HFI port.
#include <algorithm>

#include "emulator/hfi/window_unit.h"

namespace percs {

int& WindowUnit::ImmediateUsed(WindowId window) {
  return immediate_used_[static_cast<std::size_t>(window / context_.parameters->windows_per_hfi)];
}

// Each HFI has its buffers for all its windows. One is in use until its packet is in the ISR.
WindowStatus WindowUnit::TakeImmediateBuffer(WindowId window) {
  int& used = ImmediateUsed(window);
  if (used >= parameters_.immediate_buffers) return WindowStatus::kNoImmediateBuffer;
  ++used;
  return WindowStatus::kOk;
}

bool WindowUnit::SendImmediate(OperationState& op) {
  PayloadRef payload;
  if (!op.asked.data.empty()) {
    payload = PayloadRef::Make();
    std::copy(op.asked.data.begin(), op.asked.data.end(), payload.bytes());
  }
  windows_[op.asked.window].queue.pop_front();
  op.queued = false;
  const WindowId window = op.asked.window;
  if (SendUnreliable(op, PacketOf(op, WindowPacket::Type::kImmediate), payload,
                     static_cast<int>(op.bytes))) {
    ++Count(window, HfiCounter::kImmediateSent);
  } else {
    --ImmediateUsed(window);
  }
  return true;
}

bool WindowUnit::SendFifo(OperationState& op, Window& window) {
  const Address address = window.send.AddressOf(op.slot);
  const int bytes = static_cast<int>(op.bytes);
  window.queue.pop_front();
  op.queued = false;
  if (nmmu_.Check(window.context, window.job, address, kPacketBytesMax, false) !=
      WindowStatus::kOk) {
    End(op, WindowStatus::kNotRegistered);  // the memory of the FIFO is gone
    return true;
  }
  PayloadRef payload;
  if (bytes > 0) {
    payload = PayloadRef::Make();
    nmmu_.Read(window.context, address, payload.bytes(), op.bytes);
  }
  const auto type =
      op.asked.op == WindowOp::kIpSend ? WindowPacket::Type::kIp : WindowPacket::Type::kFifo;
  SendUnreliable(op, PacketOf(op, type), payload, bytes);
  return true;
}

std::optional<DropReason> WindowUnit::OnPacket(const PacketHeader& header) {
  const auto packet = WindowPacket::ReadFrom(header);
  if (!packet) return DropReason::kMalformed;
  if (!context_.topology->is_group(header.destination))
    return Receive(header.destination_window, header, *packet);
  // To every window here that has joined; dropped if none of them took it.
  std::optional<DropReason> reason = DropReason::kWindowClosed;
  bool taken = false;
  for (std::size_t id = 0; id < windows_.size(); ++id) {
    if (!windows_[id].reserved || !windows_[id].joined(header.destination)) continue;
    reason = Receive(static_cast<WindowId>(id), header, *packet);
    taken |= !reason;
  }
  return taken ? std::nullopt : reason;
}

std::optional<DropReason> WindowUnit::Receive(WindowId id, const PacketHeader& header,
                                              const WindowPacket& packet) {
  Window& window = windows_[id];
  std::optional<DropReason> reason;
  if (!window.reserved) {
    reason = DropReason::kWindowClosed;
  } else if (window.job != packet.job) {
    reason = DropReason::kWrongKey;
  } else if (packet.type == WindowPacket::Type::kIpFragment) {
    reason = OnFragment(id, header, packet);
  } else {
    const WindowOp format = packet.type == WindowPacket::Type::kImmediate ? WindowOp::kImmediateSend
                            : packet.type == WindowPacket::Type::kIp      ? WindowOp::kIpSend
                                                                          : WindowOp::kFifoSend;
    const WindowStatus status = PutIntoFifo(id, header, format, 0);
    if (status == WindowStatus::kReceiveFifoFull)
      reason = DropReason::kReceiveFifoFull;
    else if (status != WindowStatus::kOk)
      reason = DropReason::kWindowClosed;
  }
  ++Count(id, reason ? HfiCounter::kReceiveDropped : HfiCounter::kReceived);
  return reason;
}

// The bytes are in memory at once; the program sees them when HFI, NMMU and memory have had their
// time.
WindowStatus WindowUnit::PutIntoFifo(WindowId id, const PacketHeader& header, WindowOp format,
                                     std::uint64_t offset) {
  Window& window = windows_[id];
  if (!window.receive.exists()) return WindowStatus::kNotConfigured;
  if (window.receive.full()) return WindowStatus::kReceiveFifoFull;
  const FifoPlace& place = window.receive.place();
  const WindowStatus status = nmmu_.Check(window.context, window.job, place.address,
                                          PacketFifo::BytesOf(place.slots), true);
  if (status != WindowStatus::kOk) return status;
  WindowEvent event;
  event.kind = WindowEvent::Kind::kReceived;
  event.node = context_.node;
  event.window = id;
  event.op = format;
  event.peer = header.source;
  event.peer_window = header.source_window;
  event.address = window.receive.AddressOf(window.receive.Take());
  event.bytes = header.bytes;
  event.offset = offset;
  if (header.bytes > 0) {
    nmmu_.Write(window.context, event.address, header.payload.bytes(), header.bytes);
    event.data.assign(header.payload.bytes(), header.payload.bytes() + header.bytes);
  }
  // Packets of a FIFO become visible in its order.
  const Time translated =
      context_.now + nmmu_.Translate(window.context, event.address, header.bytes);
  window.visible_at = std::max(window.visible_at, translated + parameters_.receive);
  Tell(window.visible_at, window.listener, false, std::move(event));
  return WindowStatus::kOk;
}

}  // namespace percs
