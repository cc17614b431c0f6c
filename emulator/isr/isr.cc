#include "emulator/isr/isr.h"

#include <algorithm>
#include <bit>

#include "emulator/base/check.h"
#include "emulator/isr/commitment.h"

namespace percs {

void Isr::ReceiveFlits(FlitRun&& run) {
  Packet* p = context_.packets.Take();
  p->ResetState();
  p->header.Assign(std::move(run.header));
  p->segment = {run.arrival, run.spacing, run.first, run.count};
  p->run_has_tail = run.tail;
  p->tail_marks = run.tail_marks;
  p->run_generation = run.generation;
  p->in = run.port;
  p->in_vc = run.vc;
  const FlitEvent event = run.vc == kServiceVc ? FlitEvent::kService : FlitEvent::kRun;
  context_.queue.Push(
      run.arrival, EventKey(EventClass::kFlit, run.port, run.vc, static_cast<std::uint64_t>(event)),
      EventData(p));
}

void Isr::ReceiveCredits(const CreditRun& run) {
  if (run.vc == kServiceVc) [[unlikely]]
    return AnnounceServiceCredits(run);
  AnnounceCredits(run.port, run.vc, run.arrival, run.spacing, run.count, run.generation);
}

void Isr::AnnounceCredits(PortId port, VcId vc, Time start, Time spacing, int count,
                          std::uint32_t generation) {
  OutputPort& out = outputs_[port];
  if (generation < out.generation) return;
  CreditCounter& credits = out.vc[vc].credits;
  if (credits.full()) credits.MakeRoom(context_.now);
  credits.Announce(start, spacing, count, generation);
  // Credits need no event of their own unless a packet waits for them.
  if (out.stall_since >= 0 && start < out.wake_at) {
    out.wake_at = start;
    context_.queue.Push(start, EventKey(EventClass::kCredit, port, 0, 0), 0);
  }
}

void Isr::ReceiveMark(const PoisonMark& mark) {
  PoisonMark* copy = marks_.Take();
  *copy = mark;
  context_.queue.Push(
      mark.arrival,
      EventKey(EventClass::kFlit, mark.port, mark.vc, static_cast<std::uint64_t>(FlitEvent::kMark)),
      EventData(copy));
}

void Isr::SendCredits(const InputBuffer& buffer, Time first_free, Time spacing, int count) {
  OutputPort& back = outputs_[buffer.port];  // credits leave on the reverse direction of the link
  if (!back.up) return;
  PERCS_CHECK(count > 0);
  const Time start = first_free + back.wire + context_.parameters->credit_processing;
  if (back.local) {
    back.local->AnnounceCredits(back.peer_port, buffer.vc, start, spacing, count, back.generation);
  } else {
    back.outbox->credits.push_back({start, spacing, back.peer, back.peer_port, buffer.vc,
                                    static_cast<std::uint16_t>(count), back.generation});
  }
}

// A new front that may request now wins at once if this instant has no more input (rule 3) and
// nothing else to arbitrate, and its output is idle and unclaimed: most packets of a network that
// is not saturated. REQUIRES: the last step of an input event.
template <bool queue>
void Isr::RequestOrCommit(InputBuffer& buffer, Packet* p) {
  const PortId port = p->out;
  OutputPort& out = outputs_[port];
  OutputVc& vc = out.vc[p->out_vc];
  constexpr std::uint64_t kHfiKeys = EventKey(EventClass::kHfi, 0, 0, 0).value;
  const EventQueue& events = context_.queue;
  const bool last_input = events.next_time() > context_.now || events.next_key() >= kHfiKeys;
  if (!last_input || dirty_ != 0 || out.requested_vcs != 0 || out.busy_until > context_.now ||
      out.stall_since >= 0 || vc.owner || !HasCredit(port, out, vc)) {
    buffer.PushBack(p);
    Request(buffer, p);
    return;
  }
  out.last_vc = p->out_vc;
  vc.pointer = buffer.index();
  int wanted = p->length;
  if (out.errors) [[unlikely]]
    wanted = FlitsBeforeError(port, wanted);
  const int count = vc.credits.TakeCertain(context_.now, out.flit_time, wanted);
  if (count == p->length) {
    Commit<true>(port, out, buffer, p, count, queue);
  } else {
    buffer.PushBack(p);
    CommitPart(port, out, buffer, p, count);
  }
}

void Isr::OnRun(Packet* run) {
  const PortId port = run->in;
  if (run->run_generation != outputs_[port].generation) {
    // Lost on a wire whose link went down: counted where it would have arrived (B.7).
    context_.CountDrop(DropReason::kLinkDown, run->segment.count, run->run_has_tail ? 1 : 0);
    if (run->segment.first == 0) context_.CountLoss(port, run->header.kind);
    if (run->segment.first == 0 && run->header.traced) [[unlikely]] {
      context_.Tracer().Dropped(*run, context_.now, DropReason::kLinkDown, run->segment.count);
    }
    context_.Release(run);
    return;
  }
  InputBuffer& buffer = LinkBuffer(port, run->in_vc);
  if (buffer.held + run->segment.count > buffer.slots) [[unlikely]] {
    ++context_
          .flits_without_credit;  // the sending hub is at fault; there is no buffer slot for them
    context_.Release(run);
    return;
  }
  buffer.held = static_cast<std::uint16_t>(buffer.held + run->segment.count);
  if (buffer.held > buffer.most_held) [[unlikely]] {
    context_.stats.ports[port].vc[buffer.vc].most_held = buffer.most_held = buffer.held;
  }
  if (run->segment.first == 0) {
    BeginPacket(buffer, run);
  } else {
    ContinuePacket(buffer, run);
  }
}

// Computed by the receiver itself, so that it also detects errors on the way.
void Isr::CheckPosition(const InputBuffer& buffer, PacketHeader& header) {
  const bool edge = outputs_[buffer.port].edge;
  const Position here = edge ? kInjected : PositionOf(buffer.port, buffer.vc);
  // In a graph it depends on the link before, too, which the header does not name.
  const bool in_place = edge     ? buffer.vc == 0
                        : graph_ ? true
                                 : NextPosition(header.position, buffer.port) == here;
  if (!in_place) ++context_.vcs_out_of_place;
  header.position = here;
}

Position Isr::NextInGraph(const InputBuffer& buffer, const Packet& p) const {
  if (!outputs_[p.out].connected) return kL0;
  const VcId vc = graph_->NextVc(context_.node, buffer.port, buffer.vc, p.out,
                                 router_.tables()->Detours(p.header.destination));
  return vc == SwitchGraph::kNoVc ? kNoPosition : PositionOf(kLlFirst, vc);
}

PortId Isr::RouteInTransit(PacketHeader& header, PortId in) {
  PortMask up = 0;
  for (PortId port = kDFirst; port < kHfiFirst; ++port) {
    if (outputs_[port].connected && outputs_[port].up) up |= PortBit(port);
  }
  return router_.RouteInTransit(header, in, up, [this] {
    QueuedForD waiting{};
    CountWaiting(&waiting);
    return waiting;
  });
}

void Isr::BeginPacket(InputBuffer& buffer, Packet* p) {
  p->announced = p->segment.count;
  p->length = p->run_has_tail ? p->announced : p->header.flits;
  p->out = p->header.mode == RouteMode::kAdaptive ? RouteInTransit(p->header, buffer.port)
                                                  : router_.Route(p->header, buffer.port);
  p->out_vc = 0;
  p->draining = true;
  const bool by_position = context_.parameters->vc_policy == VcPolicy::kPosition;
  if (by_position) CheckPosition(buffer, p->header);
  const bool positioned = by_position && p->out < kLinkPorts && !outputs_[p->out].edge;
  const Position next = !positioned ? kL0
                        : graph_    ? NextInGraph(buffer, *p)
                                    : NextPosition(p->header.position, p->out);
  if (p->out >= kPorts || !outputs_[p->out].connected) {
    p->draining = p->out != kReplication;
    p->reason = p->out == kDamagedEntry ? DropReason::kTableParity : DropReason::kNoRoute;
  } else if (next == kNoPosition) {
    p->reason = DropReason::kNoVcPosition;
  } else if (!outputs_[p->out].up) {
    p->reason = DropReason::kLinkDown;
  } else {
    p->draining = false;
    p->out_vc = VcOfPosition(next);
  }
  const bool front = !p->draining && (p->out == kReplication || !buffer.HasFront(p->out));
  if (p->header.traced) [[unlikely]]
    TraceArrival(*p, front);
  // Whole, and no slower than the output: it may request at once (B.4), without asking Eligible.
  if (front && p->complete() &&
      (p->announced == 1 || p->segment.spacing <= outputs_[p->out].flit_time)) {
    RequestOrCommit<false>(buffer, p);
    return;
  }
  buffer.PushBack(p);
  if (p->draining) {
    p->drains_from = context_.now;
    Drain(buffer, p);
  } else if (front) {
    Advance(buffer, p);
  }
}

void Isr::ContinuePacket(InputBuffer& buffer, Packet* run) {
  Packet* p = buffer.newest;
  if (!p || p->complete() || p->header.source != run->header.source ||
      p->header.sequence != run->header.sequence ||
      p->announced + run->segment.count > kPacketFlitsMax + 1) {
    // They are not expected; their own packet stays unfinished, and the run ends as a deadlock.
    ++context_.flits_out_of_order;
    context_.Release(run);
    return;
  }
  if (p->announced != run->segment.first) {
    ++context_.flits_out_of_order;
    run->segment.first = p->announced;
  }
  p->Announce(run->segment);
  if (run->run_has_tail) {
    p->length = p->announced;
    p->tail_marks |= run->tail_marks;
  }
  context_.Release(run);
  if (p->draining) {
    Drain(buffer, p);
  } else if (buffer.Acts(p)) {
    Advance(buffer, p);
  }
}

void Isr::OnInjected(Packet* p) {
  InputBuffer& queue = Queue(p->in, p->out);
  p->segment = {context_.now, 0, 0, p->header.flits};
  p->length = p->announced = p->header.flits;
  if (p->header.traced) [[unlikely]]
    TraceEntry(*p);
  const bool up = outputs_[p->out].up;
  if (up && !queue.HasFront(p->out)) {
    RequestOrCommit<true>(queue, p);
    return;
  }
  queue.PushBack(p);
  if (up) return;
  if (p->out == kReplication) {
    Replicate(queue, p);
  } else {
    Doom(queue, p);
  }
}

// --- Requests ------------------------------------------------------------------------------------

// A packet behind another one for the same output requests as soon as that one's tail is committed:
// the output is busy until the tail has left, so an earlier request has no effect (B.4).
void Isr::Advance(InputBuffer& buffer, Packet* p) {
  if (p->requesting) return;
  if (p->header.traced) [[unlikely]]
    TraceFront(*p);
  const Time e = Eligible(*p);
  if (e <= context_.now) {
    Request(buffer, p);
  } else if (e < kNever) {
    Wake(buffer, p->out, e);
  }
}

Time Isr::Eligible(const Packet& p) const {
  if (IsHfi(p.in) && !p.begun) return context_.now;
  const OutputPort& out = outputs_[p.out];
  if (p.begun) {
    if (p.announced == p.sent) return kNever;
    // Its own commitment is the last of the output while it runs.
    return std::max(p.ArrivalOf(p.sent), out.unfinished == &p ? out.busy_until : Time{0});
  }
  const Time f = out.flit_time;
  Time e = kNever;
  if (p.complete()) {
    const auto latest = [f](const Segment& s) {
      // a_i - i x f is linear within a run: its maximum is at one end.
      return std::max(s.start - s.first * f, s.last() - (s.first + s.count - 1) * f);
    };
    e = latest(p.segment);
    if (!p.one_run()) {
      for (const Segment& s : p.more) e = std::max(e, latest(s));
    }
  }
  const int slots = BufferSlots(p.in);
  if (slots < p.length && p.announced >= slots) e = std::min(e, p.ArrivalOf(slots - 1));
  return e;
}

void Isr::Request(InputBuffer& buffer, Packet* p) {
  if (p->out == kReplication) [[unlikely]]
    return Replicate(buffer, p);
  p->requesting = true;
  if (p->header.traced) [[unlikely]]
    TraceRequest(*p);
  OutputPort& out = outputs_[p->out];
  out.requesters[p->out_vc].Set(buffer.index());
  out.requested_vcs |= static_cast<std::uint8_t>(1 << p->out_vc);
  ++out.requests;
  // A busy output has nothing to arbitrate before it is free.
  if (out.busy_until > context_.now) {
    ScheduleFree(p->out, out);
  } else {
    dirty_ |= PortBit(p->out);
  }
}

void Isr::ClearRequest(InputBuffer& buffer, Packet* p) {
  if (!p->requesting) return;
  p->requesting = false;
  outputs_[p->out].TakeRequest(p->out_vc, buffer.index());
  dirty_ |= PortBit(p->out);
}

void Isr::Wake(InputBuffer& buffer, PortId output, Time at) {
  const std::uint64_t detail =
      static_cast<std::uint64_t>(TimerEvent::kInput) | static_cast<std::uint64_t>(output) << 8;
  context_.queue.Push(at, EventKey(EventClass::kTimer, buffer.port, buffer.vc, detail), 0);
}

void Isr::OnInputTimer(PortId port, int vc, PortId output) {
  InputBuffer& buffer = IsHfi(port) ? Queue(port, vc == 0 ? output : kReplication)
                                    : LinkBuffer(port, static_cast<VcId>(vc));
  if (buffer.is_queue() && buffer.queue.room_wanted &&
      AsQueue(buffer).tail_leaves <= context_.now) {
    buffer.queue.room_wanted = false;
    listener_.OnQueueRoom();
  }
  if (output == kReplication) [[unlikely]]
    return OnReplicationTimer(buffer);
  if (Packet* p = buffer.Front(output)) {
    if (p->begun) dirty_ |= PortBit(output);
    Advance(buffer, p);
  }
  for (Packet* p = buffer.head; p;) {
    Packet* next = p->next;
    if (p->draining && p->out == output) Drain(buffer, p);
    p = next;
  }
}

void Isr::OnOutputFree(PortId port) {
  outputs_[port].free_scheduled = false;
  dirty_ |= PortBit(port);
}

void Isr::OnCreditWake(PortId port) {
  outputs_[port].wake_at = kNever;
  dirty_ |= PortBit(port);
}

// --- Arbitration ---------------------------------------------------------------------------------

void Isr::Arbitrate() {
  while (dirty_) {
    const int port = std::countr_zero(dirty_);
    dirty_ &= dirty_ - 1;
    ArbitrateOutput(static_cast<PortId>(port));
  }
}

void Isr::ArbitrateOutput(PortId port) {
  OutputPort& out = outputs_[port];
  if (out.busy_until > context_.now) {
    if (out.requests > 0 || ServiceWaits(port)) ScheduleFree(port, out);
    return;
  }
  if (ServiceWaits(port) && GrantService(port, out)) [[unlikely]]
    return;
  if (out.requests == 0) {
    SetStall(port, out, 0);
    return;
  }
  CollectEjectionCredits(port, out);
  const int winner = Arbitrated(port, out);
  if (watched_ & PortBit(port)) [[unlikely]]
    ExplainWaits(port, winner >= 0);
  if (winner < 0) return;
  SetStall(port, out, 0);
  const PortId in = static_cast<PortId>(winner / 3);
  InputBuffer& buffer = IsHfi(in) ? Queue(in, winner % 3 == 0 ? port : kReplication)
                                  : LinkBuffer(in, static_cast<VcId>(winner % 3));
  if (out.requests > 1) CountLosses(port, out, winner);
  Packet* p = buffer.Front(port);
  p->requesting = false;
  out.TakeRequest(p->out_vc, winner);
  int wanted = FlitsInTime(out, *p);
  if (out.errors) wanted = FlitsBeforeError(port, wanted);
  const int count = out.vc[p->out_vc].credits.TakeCertain(context_.now, out.flit_time, wanted);
  PERCS_CHECK(count >= 1);
  CommitPart(port, out, buffer, p, count);
}

int Isr::Arbitrated(PortId port, OutputPort& out) {
  const Time now = context_.now;
  if (out.unfinished && out.busy_until == now && CanContinue(out)) return out.unfinished_index;
  unsigned stalled = 0;  // bit v: VC v lacks nothing but a credit
  Time wake = kNever;
  const unsigned requested = out.requested_vcs, above = ~0u << (out.last_vc + 1);
  for (const unsigned part : {requested & above, requested & ~above}) {
    for (unsigned rest = part; rest; rest &= rest - 1) {
      const int v = std::countr_zero(rest);
      OutputVc& vc = out.vc[static_cast<std::size_t>(v)];
      const RequestSet& requesters = out.requesters[static_cast<std::size_t>(v)];
      if (vc.owner && !requesters.Has(vc.owner_index)) continue;
      if (!vc.credits.Any(now)) {
        stalled |= 1u << v;
        wake = std::min(wake, vc.credits.Next());
        continue;
      }
      out.last_vc = v;
      vc.pointer = vc.owner ? vc.owner_index : requesters.FirstAfter(vc.pointer);
      return vc.pointer;
    }
  }
  SetStall(port, out, stalled);
  if (wake < out.wake_at) {
    out.wake_at = wake;
    context_.queue.Push(wake, EventKey(EventClass::kCredit, port, 0, 0), 0);
  }
  return -1;
}

void Isr::ScheduleFree(PortId port, OutputPort& out) {
  if (out.free_scheduled) return;
  out.free_scheduled = true;
  context_.queue.Push(
      out.busy_until,
      EventKey(EventClass::kTimer, port, 0xff, static_cast<std::uint64_t>(TimerEvent::kOutputFree)),
      0);
}

bool Isr::CanContinue(OutputPort& out) {
  OutputVc& vc = out.vc[out.unfinished->out_vc];
  return vc.owner == out.unfinished &&
         out.requesters[out.unfinished->out_vc].Has(out.unfinished_index) &&
         vc.credits.Any(context_.now);
}

void Isr::CommitPart(PortId port, OutputPort& out, InputBuffer& buffer, Packet* p, int count) {
  Commit<false>(port, out, buffer, p, count, buffer.is_queue());
}

void Isr::ReturnCredits(InputBuffer& buffer, Time first_free, Time spacing, int count) {
  if (count > 0) SendCredits(buffer, first_free, spacing, count);
}

// --- HFI side ------------------------------------------------------------------------------------
void Isr::ReturnEjectionCredits(PortId port, int flits) {
  AnnounceCredits(port, 0, context_.now + context_.parameters->credit_processing, 0, flits,
                  outputs_[port].generation);
}

}  // namespace percs
