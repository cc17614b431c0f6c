#include "emulator/hfi/hfi.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "emulator/packet/payload_pattern.h"

namespace percs {

bool Hfi::Send(Packet* p, bool verified, const RouteSetting& route) {
  PacketHeader& header = p->header;
  header.source = context_.node;
  header.sequence = next_sequence_++;
  header.flits = static_cast<std::uint8_t>(FlitsFor(header.bytes));
  header.epoch = isr_->router().epoch();
  header.created = context_.now;
  ++context_.stats.packets_created;
  context_.stats.flits_created += header.flits;
  ++context_.work->resident;
  if (context_.WindowDown(header.source_window)) [[unlikely]] {
    context_.CountDrop(DropReason::kWindowDown, header.flits, 1);
    context_.CountLoss(kWindowsPlace, header.kind);
    context_.Release(p);
    return false;
  }
  const PortId in = isr_->router().WindowPort(header.source_window);
  const PortId out = isr_->router().RouteFromSource(header, in, route, queued_);
  p->in = in;
  p->out = out;
  p->out_vc = isr_->FirstVc(header.destination, out);
  if (verified && header.bytes > 0 && out < kQueueOutputs) FillPayload(header);
  if (context_.tracer) [[unlikely]]
    Trace(p, out);
  if (out >= kQueueOutputs) {
    if (out == kDamagedEntry) context_.CountLoss(kTablesPlace, header.kind);
    context_.CountDrop(out == kDamagedEntry ? DropReason::kTableParity : DropReason::kNoRoute,
                       header.flits, 1);
    context_.Release(p);
    return false;
  }
  Port& port = ports_[static_cast<std::size_t>(in - kHfiFirst)];
  if (context_.work->fetches) {
    isr_->FetchCredits(out, p->out_vc, header.flits);
    isr_->FetchPeer(out);
  }
  isr_->Queue(in, out).waiting.Push(p);
  queued_[out] += p->header.flits;
  port.waiting |= PortBit(out);
  waiting_ports_ |= 1u << (in - kHfiFirst);
  ++backlog_;
  pending_ = true;
  return true;
}

void Hfi::Trace(Packet* p, PortId out) {
  context_.tracer->Begin(p, context_.now);
  if (p->header.traced && out >= kQueueOutputs) {
    const auto reason = out == kDamagedEntry ? DropReason::kTableParity : DropReason::kNoRoute;
    context_.tracer->Dropped(*p, context_.now, reason, p->header.flits);
  }
}

void Hfi::HandOver() {
  pending_ = false;
  if (backlog_ == 0) return;
  const Time now = context_.now;
  if (w_in_free_ > now) {
    WakeWhenWIsFree();
    return;
  }
  static_assert(kHfiPorts == 8);
  const int first = last_port_ + 1;
  for (unsigned rest = std::rotr(static_cast<std::uint8_t>(waiting_ports_), first); rest;
       rest &= rest - 1) {
    const int index = (first + std::countr_zero(rest)) & (kHfiPorts - 1);
    Port& port = ports_[static_cast<std::size_t>(index)];
    // A busy port requests again by itself when its packet has entered the ISR.
    if (port.free_at > now) continue;
    const PortId hfi_port = static_cast<PortId>(kHfiFirst + index);
    HfiQueue* const queue = ServedQueue(hfi_port, port);
    if (!queue) continue;
    last_port_ = index;
    Start(hfi_port, port, *queue);
    return;
  }
}

HfiQueue* Hfi::ServedQueue(PortId hfi_port, Port& port) {
  const int first = port.last_output + 1;
  for (PortMask rest = std::rotr(port.waiting, first); rest; rest &= rest - 1) {
    const int output = (first + std::countr_zero(rest)) & 63;
    HfiQueue& queue = isr_->Queue(hfi_port, static_cast<PortId>(output));
    if (isr_->HasRoom(queue)) return &queue;
  }
  return nullptr;
}

void Hfi::Start(PortId hfi_port, Port& port, HfiQueue& queue) {
  const PortId output = queue.queue.output;
  Packet* p = queue.waiting.Pop();
  ++queue.packets;
  if (!queue.waiting.head) {
    port.waiting &= ~PortBit(output);
    if (port.waiting == 0) waiting_ports_ &= ~(1u << (hfi_port - kHfiFirst));
  }
  --backlog_;
  port.last_output = output;
  const Time now = context_.now;
  const int flits = p->header.flits;
  queued_[output] -= static_cast<std::uint32_t>(flits);
  w_in_free_ = now + flits * context_.parameters->w_flit_time;
  port.free_at = now + flits * context_.parameters->hfi.flit_time;
  if (context_.work->fetches) {
    isr_->FetchPeer(output);
    FetchHandOvers(hfi_port, port);
  } else {
    isr_->Fetch(output);
  }
  if (context_.phase && p->header.kind <= PacketKind::kData)
    context_.phase->Injected(now, p->header.bytes);
  context_.queue.Push(
      port.free_at,
      EventKey(EventClass::kFlit, hfi_port, 0, static_cast<std::uint64_t>(FlitEvent::kRun)),
      EventData(p));
  if (backlog_ > 0) WakeWhenWIsFree();
  listener_.OnBacklogShrunk();
}

// Send queues are many and their packets have waited for long. What a port will hand over in its
// next turn is fetched a turn ahead, and the packet of the port after the next one now.
void Hfi::FetchHandOvers(PortId hfi_port, const Port& port) const {
  if (port.waiting != 0) isr_->FetchQueue(hfi_port, port.next_output());
  const int first = last_port_ + 1;
  unsigned rest = std::rotr(static_cast<std::uint8_t>(waiting_ports_), first);
  if ((rest & (rest - 1)) != 0) rest &= rest - 1;
  if (rest == 0) return;
  const int index = (first + std::countr_zero(rest)) & (kHfiPorts - 1);
  const Port& next = ports_[static_cast<std::size_t>(index)];
  FetchPacket(isr_->Queue(static_cast<PortId>(kHfiFirst + index), next.next_output()).waiting.head);
}

void Hfi::OnEjected(PortId port, Packet* packet, Time arrival) {
  if (packet->header.kind != PacketKind::kRaw) ++awaited_;
  tails_.push_back({arrival, port, packet});
  for (std::size_t i = tails_.size() - 1; i > 0 && tails_[i] < tails_[i - 1]; --i) {
    std::swap(tails_[i], tails_[i - 1]);
  }
  if (awaited_ > 0) Refresh();
}

void Hfi::OnW() {
  const Time now = context_.now;
  if (awaited_ > 0) DeliverBefore(now + 1);
  if (w_wake_ == now) {
    w_wake_ = kNever;
    pending_ = true;
  }
  Refresh();
}

void Hfi::DeliverBefore(Time limit) {
  const Time now = context_.now;
  for (Time at = next_delivery(); at < limit; at = next_delivery()) {
    Packet* packet = tails_.front().packet;
    tails_.pop_front();
    if (tails_.size() > 1) FetchPacket(tails_[1].packet);
    w_out_free_ = at + packet->length * context_.parameters->w_flit_time;
    if (packet->header.kind != PacketKind::kRaw) --awaited_;
    context_.now = at;
    isr_->ReturnEjectionCredits(packet->out, packet->length);
    listener_.OnDelivered(packet);
  }
  context_.now = now;
}

}  // namespace percs
