// Injection: operations of a window wait in the order of their issue. They leave packet by packet,
// as fast as the window may inject, memory is translated, and acknowledgements arrive.
#include <algorithm>

#include "emulator/hfi/window_unit.h"

namespace percs {

WindowStatus WindowUnit::CheckPeer(const WindowOperation& asked) const {
  const Topology& topology = *context_.topology;
  if (asked.op == WindowOp::kIpSend && asked.node < topology.destinations() &&
      topology.is_group(asked.node)) {
    const MulticastGroup& group = topology.groups()[topology.group_of(asked.node)];
    if (group.source != context_.node)
      return WindowStatus::kNoRoute;  // only its source sends to a group
  } else if (asked.node >= topology.hubs()) {
    return WindowStatus::kNoSuchNode;
  }
  return asked.peer_window < windows_.size() ? WindowStatus::kOk : WindowStatus::kNoSuchWindow;
}

WindowStatus WindowUnit::CheckSend(const WindowOperation& asked, Window& window) {
  if (asked.op == WindowOp::kFence) {
    return asked.fence_writes || asked.fence_reads ? WindowStatus::kOk : WindowStatus::kInvalid;
  }
  if (const WindowStatus status = CheckPeer(asked); status != WindowStatus::kOk) return status;
  std::uint64_t bytes = 0;
  MemoryPlace place;
  switch (asked.op) {
    case WindowOp::kImmediateSend:
      return asked.data.size() > kImmediateBytesMax ? WindowStatus::kTooLarge
                                                    : TakeImmediateBuffer(asked.window);
    case WindowOp::kFifoSend:
      break;
    case WindowOp::kIpSend:
      if (asked.data.empty()) return CheckSegments(asked, false, &bytes);
      if (!asked.segments.empty()) return WindowStatus::kInvalid;  // one or the other
      break;
    case WindowOp::kRdmaWrite:
      if (!asked.data.empty()) break;
      if (asked.bytes == 0) return WindowStatus::kEmpty;
      if (asked.bytes > 0xffffffffu) return WindowStatus::kTooLarge;
      return CheckOwn(asked, asked.bytes, false, &place);
    case WindowOp::kRdmaRead:
      if (asked.bytes == 0) return WindowStatus::kEmpty;
      if (asked.bytes > 0xffffffffu) return WindowStatus::kTooLarge;
      if (asked.to_fifo)
        return window.receive.exists() ? WindowStatus::kOk : WindowStatus::kNotConfigured;
      return CheckOwn(asked, asked.bytes, true, &place);
    case WindowOp::kAtomic:
      return CheckUpdates(asked.updates);
    default:
      return WindowStatus::kInvalid;
  }
  // Through the send FIFO.
  if (asked.data.size() > kPacketBytesMax) return WindowStatus::kTooLarge;
  if (!window.send.exists()) return WindowStatus::kNotConfigured;
  if (window.send.full()) return WindowStatus::kSendFifoFull;
  return nmmu_.Check(window.context, window.job, window.send.place().address,
                     PacketFifo::BytesOf(window.send.place().slots), false);
}

OperationState& WindowUnit::Add(WindowOperation&& asked, ListenerId listener) {
  auto state = std::make_unique<OperationState>();
  OperationState& op = *state;
  Window& window = windows_[asked.window];
  op.asked = std::move(asked);
  op.listener = listener;
  op.request = next_request_++;
  op.reservation = window.reservation;
  op.progress = context_.now;
  ++window.operations;
  operations_[op.request] = std::move(state);
  return op;
}

void WindowUnit::Queue(OperationState& op, Time ready_at) {
  op.ready_at = ready_at;
  windows_[op.asked.window].queue.push_back(&op);
  PumpAt(op.asked.window, ready_at);
}

// What the program does before it pulls the trigger, and what passes until the first packet's bytes
// are in the HFI.
Time WindowUnit::IssueTime(OperationState& op) {
  Window& window = windows_[op.asked.window];
  Time source = op.asked.cached ? parameters_.cache_read : parameters_.memory_read;
  const bool of_memory = op.asked.op == WindowOp::kRdmaRead ||
                         (op.asked.op == WindowOp::kRdmaWrite && op.asked.data.empty());
  op.bytes = of_memory ? op.asked.bytes : op.asked.data.size();
  ContextId context = op.asked.context;
  Address address = op.asked.address;
  switch (op.asked.op) {
    case WindowOp::kImmediateSend:
      return parameters_.immediate_issue;
    case WindowOp::kRdmaRead:
      op.counts_read = true;
      return parameters_.rdma_issue;
    case WindowOp::kAtomic:
      op.counts_write = true;
      op.counts_read = std::any_of(op.asked.updates.begin(), op.asked.updates.end(),
                                   [](const auto& u) { return u.fetch; });
      return parameters_.rdma_issue;
    case WindowOp::kFence:
      return 0;
    case WindowOp::kIpSend:
      if (op.asked.data.empty()) {
        op.bytes = 0;
        for (const MemorySegment& segment : op.asked.segments) op.bytes += segment.bytes;
        context = op.asked.segments.front().context;
        address = op.asked.segments.front().address;
      }
      break;
    default:
      op.counts_write = op.asked.op == WindowOp::kRdmaWrite;
      break;
  }
  const bool staged = op.asked.op == WindowOp::kFifoSend || !op.asked.data.empty();
  if (staged) {
    op.slot = window.send.Take();
    op.has_slot = true;
    context = window.context;
    address = window.send.AddressOf(op.slot);
    nmmu_.Write(context, address, op.asked.data.data(), op.asked.data.size());
  }
  const std::uint64_t first = std::min<std::uint64_t>(op.bytes, kPacketBytesMax);
  MemoryPlace place;
  if (OnDevice(context, op.asked.job, address, first, &place))
    source = 0;  // its turn at the device comes later
  op.translated = nmmu_.page_of(address + std::max<std::uint64_t>(first, 1) - 1) << 16 | context;
  return (op.asked.op == WindowOp::kFifoSend || staged ? parameters_.fifo_issue
                                                       : parameters_.rdma_issue) +
         source + nmmu_.Translate(context, address, first);
}

// False: the packet has to wait for the translation of a page that the operation has not come to
// before.
bool WindowUnit::Translated(OperationState& op, ContextId context, Address address,
                            std::uint64_t bytes) {
  const std::uint64_t page = nmmu_.page_of(address + bytes - 1) << 16 | context;
  if (op.translated == page) return true;
  op.translated = page;
  op.ready_at = context_.now + nmmu_.Translate(context, address, bytes);
  return op.ready_at <= context_.now;
}

void WindowUnit::PumpAt(WindowId id, Time at) {
  Window& window = windows_[id];
  if (at >= window.pump_at) return;
  window.pump_at = at;
  Deferred d;
  d.kind = Deferred::Kind::kPump;
  d.window = id;
  Schedule(at, std::move(d));
}

bool WindowUnit::FenceHolds(const OperationState& op, const Window& window) const {
  return (op.asked.fence_writes && window.writes > 0) || (op.asked.fence_reads && window.reads > 0);
}

void WindowUnit::Pump(WindowId id) {
  Window& window = windows_[id];
  while (!window.queue.empty()) {
    OperationState& op = *window.queue.front();
    if (op.ended) {
      window.queue.pop_front();
      op.queued = false;
      EraseIfOver(op);
      continue;
    }
    if (op.asked.op == WindowOp::kFence) {
      if (FenceHolds(op, window)) return;  // when the awaited operation ends, it is tried again
      End(op, WindowStatus::kOk);
      continue;
    }
    const Time at = std::max(op.ready_at, window.free_at);
    if (at > context_.now) return PumpAt(id, at);
    if (!op.begun) BeginSending(op, window);
    if (SendNext(op, window)) continue;
    if (op.ready_at > context_.now) PumpAt(id, op.ready_at);
    return;
  }
}

void WindowUnit::BeginSending(OperationState& op, Window& window) {
  op.begun = true;
  op.progress = context_.now;
  window.writes += op.counts_write;
  window.reads += op.counts_read;
  if (op.asked.op < WindowOp::kRdmaWrite || window.timeout_at != kNever) return;
  window.timeout_at = context_.now + AnswerTimeout();
  Deferred d;
  d.kind = Deferred::Kind::kTimeout;
  d.window = op.asked.window;
  Schedule(window.timeout_at, std::move(d));
}

bool WindowUnit::SendNext(OperationState& op, Window& window) {
  switch (op.asked.op) {
    case WindowOp::kImmediateSend:
      return SendImmediate(op);
    case WindowOp::kFifoSend:
      return SendFifo(op, window);
    case WindowOp::kIpSend:
      return op.has_slot ? SendFifo(op, window) : SendFragment(op);
    case WindowOp::kRdmaWrite:
      return SendWrite(op, window);
    case WindowOp::kRdmaRead:
      return SendRead(op, window);
    default:
      return SendAtomic(op, window);
  }
}

void WindowUnit::Occupy(Window& window, int bytes) {
  window.free_at =
      context_.now + std::max(parameters_.packet_time, FlitsFor(bytes) * parameters_.flit_time);
}

WindowPacket WindowUnit::PacketOf(const OperationState& op, WindowPacket::Type type) const {
  WindowPacket packet;
  packet.type = type;
  packet.job = op.asked.job;
  packet.request = op.request;
  packet.notify = op.asked.notify;
  packet.length = static_cast<std::uint32_t>(op.bytes);
  return packet;
}

// False: it did not leave the hub, and the operation has ended.
bool WindowUnit::SendUnreliable(OperationState& op, WindowPacket packet, const PayloadRef& payload,
                                int bytes) {
  Packet* p = hfi_.NewPacket();
  PacketHeader& header = p->header;
  header.destination = op.asked.node;
  header.source_window = op.asked.window;
  header.destination_window = op.asked.peer_window;
  header.bytes = static_cast<std::uint16_t>(bytes);
  header.payload = payload;
  packet.WriteTo(&header);
  Occupy(windows_[op.asked.window], bytes);
  ++op.under_way;
  if (hfi_.Send(p, false, hfi_.route(TrafficClass::kFifo))) {
    ++Count(op.asked.window, HfiCounter::kSent);
    return true;
  }
  --op.under_way;
  ++Count(op.asked.window, HfiCounter::kSendDropped);
  End(op, WindowStatus::kNoRoute);
  return false;
}

void WindowUnit::SendReliable(const WindowPacket& packet, NodeId node, WindowId from, WindowId to,
                              const PayloadRef& payload, int bytes) {
  PacketHeader header;
  header.destination = node;
  header.source_window = from;
  header.destination_window = to;
  header.bytes = static_cast<std::uint16_t>(bytes);
  header.payload = payload;
  packet.WriteTo(&header);
  ++Count(from, HfiCounter::kSent);
  messages_.SendOperation(header);
}

// --- Fate of the packets -------------------------------------------------------------------------

void WindowUnit::OnEnteredIsr(const PacketHeader& header) {
  const auto packet = WindowPacket::ReadFrom(header);
  PERCS_CHECK(packet.has_value());
  if (packet->type == WindowPacket::Type::kImmediate) {
    --ImmediateUsed(header.source_window);
  }
  OperationState* op = Operation(header.tag);
  PERCS_CHECK(op != nullptr);
  --op->under_way;
  if (!op->ended && !op->queued && op->under_way == 0) return End(*op, WindowStatus::kOk);
  EraseIfOver(*op);
}

void WindowUnit::OnOperationDone(std::uint64_t word, std::uint32_t tag, bool delivered,
                                 bool refused) {
  WindowPacket packet;
  packet.type = WindowPacket::TypeOf(word);
  if (packet.answers()) return;  // an answer that was given up ends by a timeout
  OperationState* op = Operation(tag);
  PERCS_CHECK(op != nullptr);
  --op->under_way;
  const WindowId id = op->asked.window;
  Window& window = windows_[id];
  if (op->reservation == window.reservation) {
    --window.unacknowledged;
    if (!window.queue.empty()) PumpAt(id, context_.now);
  }
  op->progress = context_.now;
  if (!delivered && !op->ended)
    return End(*op, refused ? WindowStatus::kNoRoute : WindowStatus::kUnreachable);
  EraseIfOver(*op);
}

}  // namespace percs
