// RDMA and atomic updates, at the requesting and at the executing end (paper 000 section IV-B,
// IV-E). Every packet is one of the message layer's, exactly once and in any order, so that writes
// need no buffer at their target and no update is done twice. The target's HFI answers the
// requester that all was done, or what was wrong.
#include <algorithm>
#include <cstring>
#include <utility>

#include "emulator/hfi/window_unit.h"

namespace percs {
namespace {

constexpr std::uint32_t kReadBytesMax = 1 << 20;  // of one request
constexpr std::size_t kIncomingKept = 4096;       // before dead ones are looked for

}  // namespace

// --- Asking
// Its last packet: the next operation's turn.
bool WindowUnit::Leaves(OperationState& op, Window& window) {
  window.queue.pop_front();
  op.queued = false;
  return true;
}

bool WindowUnit::SendWrite(OperationState& op, Window& window) {
  if (window.unacknowledged >= parameters_.unacknowledged) return false;
  if (op.paced && op.sent - op.done >= PacedBytes()) return false;
  const std::uint64_t bytes = std::min<std::uint64_t>(op.bytes - op.sent, kPacketBytesMax);
  const ContextId context = op.has_slot ? window.context : op.asked.context;
  const Address from = op.has_slot ? window.send.AddressOf(op.slot) : op.asked.address + op.sent;
  if (!Translated(op, context, from, bytes)) return false;
  MemoryPlace place;
  if (const auto status = nmmu_.Check(context, window.job, from, bytes, false, &place);
      status != WindowStatus::kOk) {
    End(op, status);  // no region any more
    return true;
  }
  if (place.on_device() && !Fetched(op, place, bytes)) return op.ended;
  PayloadRef payload = PayloadRef::Make();
  if (place.on_device()) {
    pcie_.Read(place.port, place.offset, payload.bytes(), bytes);
  } else {
    nmmu_.Read(context, from, payload.bytes(), bytes);
  }
  const bool last = op.sent + bytes == op.bytes;
  WindowPacket packet =
      PacketOf(op, op.asked.to_fifo ? WindowPacket::Type::kWriteFifo : WindowPacket::Type::kWrite);
  packet.context = op.asked.peer_context;
  packet.address = (op.asked.to_fifo ? 0 : op.asked.peer_address) + op.sent;
  op.sent += bytes;
  packet.at_once =
      last || (op.paced && op.sent - op.done >= PacedBytes());  // nothing may follow for long
  if (place.on_device()) {
    packet.at_once |= AskedLongAgo(op.device.asked);
    if (packet.at_once) op.device.asked = context_.now;
    if (!last) FetchAhead(op, place, std::min<std::uint64_t>(op.bytes - op.sent, kPacketBytesMax));
  }
  ++op.under_way;
  ++window.unacknowledged;
  Occupy(window, static_cast<int>(bytes));
  const NodeId node = op.asked.node;
  const WindowId id = op.asked.window, peer = op.asked.peer_window;
  if (last) Leaves(op, window);
  SendReliable(packet, node, id, peer, payload, static_cast<int>(bytes));
  return true;
}

// Asks for a part at a time, so that no hub has to keep more of an answer than a few parts.
bool WindowUnit::SendRead(OperationState& op, Window& window) {
  const std::uint64_t unit = ReadUnit();
  if (window.unacknowledged >= parameters_.unacknowledged) return false;
  if (op.sent > op.done &&
      op.sent - op.done > (static_cast<std::uint64_t>(parameters_.read_units) - 1) * unit) {
    return false;
  }
  const std::uint64_t bytes = std::min(op.bytes - op.sent, unit);
  WindowPacket packet = PacketOf(op, WindowPacket::Type::kRead);
  packet.context = op.asked.peer_context;
  packet.address = op.asked.peer_address + op.sent;
  packet.length = static_cast<std::uint32_t>(bytes);
  packet.at_once = true;
  op.sent += bytes;
  ++op.under_way;
  ++window.unacknowledged;
  Occupy(window, 0);
  const NodeId node = op.asked.node;
  const WindowId id = op.asked.window, peer = op.asked.peer_window;
  if (op.sent == op.bytes) Leaves(op, window);
  SendReliable(packet, node, id, peer, PayloadRef(), 0);
  return true;
}

bool WindowUnit::SendAtomic(OperationState& op, Window& window) {
  if (window.unacknowledged >= parameters_.unacknowledged) return false;
  const int bytes = static_cast<int>(op.asked.updates.size()) * kAtomicRecordBytes;
  PayloadRef payload = PayloadRef::Make();
  WriteUpdates(op.asked.updates, payload.bytes());
  WindowPacket packet = PacketOf(op, WindowPacket::Type::kAtomic);
  packet.context = op.asked.peer_context;
  packet.address = op.asked.updates.front().address;
  packet.at_once = true;
  ++op.under_way;
  ++window.unacknowledged;
  Occupy(window, bytes);
  const NodeId node = op.asked.node;
  const WindowId id = op.asked.window, peer = op.asked.peer_window;
  Leaves(op, window);
  SendReliable(packet, node, id, peer, payload, bytes);
  return true;
}

// --- Doing
// When the HFI gets to a packet that has come now: after translation and memory, updates one after
// the other.
Time WindowUnit::ReadyAt(const PacketHeader& header, const WindowPacket& packet, DevicePart* part) {
  const Time now = context_.now;
  switch (packet.type) {
    case WindowPacket::Type::kWrite:
      return StoredAt(packet.context, packet.job, packet.address, header.bytes, part);
    case WindowPacket::Type::kRead: {
      const Time translated = now + nmmu_.Translate(packet.context, packet.address, 1);
      MemoryPlace place;
      if (!OnDevice(packet.context, packet.job, packet.address, packet.length, &place)) {
        return translated + parameters_.memory_read;
      }
      part->asked = now;
      const auto first = std::min<std::uint32_t>(packet.length, kPacketBytesMax);
      part->transfer = pcie_.Begin(PcieWay::kFromDevice, place.port, first, translated);
      return part->transfer.done;
    }
    case WindowPacket::Type::kReadData: {
      const OperationState* op = Operation(packet.request);
      if (!op || op->asked.to_fifo) return now;
      const Address to = op->asked.address + (packet.address - op->asked.peer_address);
      return StoredAt(op->asked.context, op->asked.job, to, header.bytes, part);
    }
    case WindowPacket::Type::kAtomic: {
      Time translated = now;
      const auto updates = ReadUpdates(header.payload.bytes(), header.bytes);
      for (const AtomicUpdate& update : updates)
        translated += nmmu_.Translate(packet.context, update.address, 1);
      return atomics_.Schedule(translated, updates.size());
    }
    case WindowPacket::Type::kWriteFifo:
      return now;
    default:
      return now + parameters_.receive;  // until the program sees it
  }
}

void WindowUnit::OnOperation(const PacketHeader& header) {
  const auto packet = WindowPacket::ReadFrom(header);
  PERCS_CHECK(packet.has_value());
  ++Count(header.destination_window, HfiCounter::kReceived);
  Deferred d;
  d.kind = Deferred::Kind::kServe;
  d.header = header;
  const Time at = ReadyAt(header, *packet, &d.part);
  if (packet->type == WindowPacket::Type::kWrite && d.part.transfer.plug != 0)
    Pace(header, *packet);
  if (at == context_.now) return Serve(header, d.part);
  Schedule(at, std::move(d));
}

void WindowUnit::Serve(const PacketHeader& header, const DevicePart& part) {
  const auto packet = WindowPacket::ReadFrom(header);
  switch (packet->type) {
    case WindowPacket::Type::kWrite:
    case WindowPacket::Type::kWriteFifo:
      return ServeWrite(header, *packet, part);
    case WindowPacket::Type::kRead:
      return ServeRead(header, *packet, part);
    case WindowPacket::Type::kAtomic:
      return ServeAtomic(header, *packet);
    default:
      return OnAnswer(header, *packet, part);
  }
}

WindowStatus WindowUnit::CheckTarget(WindowId id, JobKey job) const {
  const Window& window = windows_[id];
  if (!window.reserved) return WindowStatus::kRemoteWindowClosed;
  return window.job == job ? WindowStatus::kOk : WindowStatus::kWrongKey;
}

WindowStatus WindowUnit::TakeWrite(const PacketHeader& header, const WindowPacket& packet,
                                   const DevicePart& part) {
  const WindowId id = header.destination_window;
  if (const WindowStatus status = CheckTarget(id, packet.job); status != WindowStatus::kOk)
    return status;
  if (packet.type == WindowPacket::Type::kWriteFifo)
    return PutIntoFifo(id, header, WindowOp::kRdmaWrite, packet.address);
  return Store(packet.context, packet.job, packet.address, header, part);
}

void WindowUnit::ServeWrite(const PacketHeader& header, const WindowPacket& packet,
                            const DevicePart& part) {
  const WindowId id = header.destination_window;
  const std::pair<NodeId, std::uint32_t> key{header.source, packet.request};
  Incoming& incoming = incoming_[key];
  const WindowStatus status = incoming.answered ? incoming.status : TakeWrite(header, packet, part);
  if (status == WindowStatus::kOk) {
    Count(id, HfiCounter::kRdmaBytesWritten) += header.bytes;
  } else {
    ++Count(id, HfiCounter::kFaults);
  }
  incoming.done += header.bytes;
  incoming.progress = context_.now;
  if (incoming.status == WindowStatus::kOk) incoming.status = status;
  if (incoming.done < packet.length) {
    // Without the device there is nothing to wait for; packets that still arrive must not take
    // effect when it is plugged in again.
    if (status == WindowStatus::kNoDevice && !std::exchange(incoming.answered, true)) {
      Answer(header, packet, incoming.status);
    } else if (incoming.paced && !incoming.answered &&
               incoming.done - incoming.told >= ReadUnit()) {
      incoming.told = incoming.done;
      TellProgress(header, packet, incoming.done);
    }
    return ForgetDeadWrites();
  }
  const WindowStatus all = incoming.status;
  const bool answered = incoming.answered;
  incoming_.erase(key);
  if (answered) return;
  if (all == WindowStatus::kOk && packet.notify) Notify(header, packet, packet.length);
  Answer(header, packet, all);
}

// Some of their packets were given up, so the rest will never be there.
void WindowUnit::ForgetDeadWrites() {
  if (incoming_.size() <= kIncomingKept) return;
  absl::erase_if(incoming_, [this](const auto& entry) {
    return entry.second.progress + AnswerTimeout() < context_.now;
  });
}

void WindowUnit::ServeRead(const PacketHeader& header, const WindowPacket& packet,
                           const DevicePart& part) {
  const WindowId id = header.destination_window;
  WindowStatus status = CheckTarget(id, packet.job);
  if (status == WindowStatus::kOk && packet.length > kReadBytesMax)
    status = WindowStatus::kTooLarge;
  MemoryPlace place;
  if (status == WindowStatus::kOk) {
    status = nmmu_.Check(packet.context, packet.job, packet.address, packet.length, false, &place);
  }
  if (status != WindowStatus::kOk) {
    ++Count(id, HfiCounter::kFaults);
    return Answer(header, packet, status);
  }
  if (place.on_device()) return ServeReadOfDevice(header, packet, place, part);
  Count(id, HfiCounter::kRdmaBytesRead) += packet.length;
  WindowPacket data = packet;
  data.type = WindowPacket::Type::kReadData;
  for (std::uint32_t done = 0; done < packet.length;) {
    const std::uint32_t bytes = std::min<std::uint32_t>(packet.length - done, kPacketBytesMax);
    PayloadRef payload = PayloadRef::Make();
    data.address = packet.address + done;
    nmmu_.Read(packet.context, data.address, payload.bytes(), bytes);
    done += bytes;
    data.at_once = done == packet.length;
    SendReliable(data, header.source, id, header.source_window, payload, static_cast<int>(bytes));
  }
}

void WindowUnit::ServeAtomic(const PacketHeader& header, const WindowPacket& packet) {
  const WindowId id = header.destination_window;
  const auto updates = ReadUpdates(header.payload.bytes(), header.bytes);
  std::vector<std::uint64_t> values;
  WindowStatus status = CheckTarget(id, packet.job);
  if (status == WindowStatus::kOk && updates.empty()) status = WindowStatus::kInvalid;
  if (status == WindowStatus::kOk)
    status = atomics_.Execute(packet.context, packet.job, updates, &values);
  if (status != WindowStatus::kOk) {
    ++Count(id, HfiCounter::kFaults);
    return Answer(header, packet, status);
  }
  Count(id, HfiCounter::kAtomics) += updates.size();
  if (packet.notify) Notify(header, packet, header.bytes);
  WindowPacket answer = packet;
  answer.type = WindowPacket::Type::kAtomicAnswer;
  answer.at_once = true;
  PayloadRef payload;
  if (!values.empty()) {
    payload = PayloadRef::Make();
    std::memcpy(payload.bytes(), values.data(), 8 * values.size());
  }
  SendReliable(answer, header.source, id, header.source_window, payload,
               static_cast<int>(8 * values.size()));
}

void WindowUnit::Answer(const PacketHeader& to, const WindowPacket& packet, WindowStatus status) {
  WindowPacket answer = packet;
  answer.type = WindowPacket::Type::kAnswer;
  answer.status = status;
  answer.at_once = true;
  SendReliable(answer, to.source, to.destination_window, to.source_window, PayloadRef(), 0);
}

void WindowUnit::Notify(const PacketHeader& header, const WindowPacket& packet,
                        std::uint64_t bytes) {
  WindowEvent event;
  event.kind = WindowEvent::Kind::kNotification;
  event.node = context_.node;
  event.window = header.destination_window;
  event.op = packet.type == WindowPacket::Type::kAtomic ? WindowOp::kAtomic : WindowOp::kRdmaWrite;
  event.peer = header.source;
  event.peer_window = header.source_window;
  event.address = packet.address;
  event.bytes = bytes;
  Window& window = windows_[header.destination_window];
  // Not before a packet that the operation put into the FIFO.
  const Time at = std::max(context_.now + parameters_.receive, window.visible_at);
  Tell(at, window.listener, false, std::move(event));
}

// --- Hearing
void WindowUnit::OnAnswer(const PacketHeader& header, const WindowPacket& packet,
                          const DevicePart& part) {
  OperationState* op = Operation(packet.request);
  // For an operation that has ended meanwhile, or from a hub that got no request.
  if (!op || op->ended || header.source != op->asked.node || op->asked.op < WindowOp::kRdmaWrite)
    return;
  op->progress = context_.now;
  if (packet.type == WindowPacket::Type::kReadData) return OnReadData(*op, header, packet, part);
  if (packet.type == WindowPacket::Type::kProgress) return OnProgress(*op, packet);
  WindowEvent completion = CompletionOf(*op, packet.status);
  if (packet.type == WindowPacket::Type::kAtomicAnswer) {
    completion.values.resize(static_cast<std::size_t>(header.bytes / 8));
    if (header.bytes > 0)
      std::memcpy(completion.values.data(), header.payload.bytes(), header.bytes);
  }
  End(*op, std::move(completion), context_.now);
}

void WindowUnit::OnReadData(OperationState& op, const PacketHeader& header,
                            const WindowPacket& packet, const DevicePart& part) {
  const std::uint64_t offset = packet.address - op.asked.peer_address;
  if (op.asked.op != WindowOp::kRdmaRead || offset >= op.bytes || header.bytes > op.bytes - offset)
    return;
  const WindowId id = op.asked.window;
  WindowStatus status;
  if (op.asked.to_fifo) {
    status = PutIntoFifo(id, header, WindowOp::kRdmaRead, offset);
  } else {
    status = Store(op.asked.context, op.asked.job, op.asked.address + offset, header, part);
  }
  if (status != WindowStatus::kOk) return End(op, status);
  op.done += header.bytes;
  Window& window = windows_[id];
  if (op.done == op.bytes) {
    const Time seen = op.asked.to_fifo ? std::max(window.visible_at, context_.now)
                                       : context_.now + parameters_.receive;
    return End(op, CompletionOf(op, WindowStatus::kOk), seen);
  }
  if (!window.queue.empty()) PumpAt(id, context_.now);
}

}  // namespace percs
