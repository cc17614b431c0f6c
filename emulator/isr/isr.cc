#include "emulator/isr/isr.h"

#include <algorithm>

#include "emulator/base/check.h"
#include "emulator/base/random.h"

namespace percs {

Isr::Isr(NodeContext& context, IsrListener& listener)
    : context_(context),
      listener_(listener),
      router_(context),
      link_fifos_(kLinkPorts * kMaxVcs),
      outputs_(kPorts) {
  for (int port = 0; port < kLinkPorts; ++port) {
    for (int vc = 0; vc < kMaxVcs; ++vc) {
      InputFifo& fifo = link_fifos_[static_cast<std::size_t>(port * kMaxVcs + vc)];
      fifo.port = static_cast<PortId>(port);
      fifo.vc = static_cast<VcId>(vc);
    }
  }
  for (int port = 0; port < kPorts; ++port) {
    OutputPort& out = outputs_[static_cast<std::size_t>(port)];
    const LinkParameters& link = context_.parameters->link(ClassOf(static_cast<PortId>(port)));
    out.flit_time = link.flit_time;
    out.vcs = VcsOf(static_cast<PortId>(port));
    if (!IsHfi(static_cast<PortId>(port))) continue;
    out.connected = out.up = true;
    out.vc[0].credits.Reset(link.buffer_flits);
  }
}

void Isr::Connect(PortId port, LinkEnd peer, Isr* local, Outbox* outbox) {
  OutputPort& out = outputs_[port];
  out.connected = out.up = true;
  out.peer = peer.node;
  out.peer_port = peer.port;
  out.local = local;
  out.outbox = outbox;
  out.wire = context_.parameters->link(ClassOf(port)).wire;
  for (int v = 0; v < out.vcs; ++v) out.vc[static_cast<std::size_t>(v)].credits.Reset(BufferSlots(port));
}

InputFifo& Isr::QueueFifo(PortId hfi_port, PortId output) {
  std::vector<InputFifo>& queues = queue_fifos_[static_cast<std::size_t>(hfi_port - kHfiFirst)];
  if (queues.empty()) {
    queues.resize(kPorts);
    for (int o = 0; o < kPorts; ++o) {
      queues[static_cast<std::size_t>(o)].port = hfi_port;
      queues[static_cast<std::size_t>(o)].queue_output = static_cast<PortId>(o);
    }
  }
  return queues[output];
}

// --- Arrivals -------------------------------------------------------------------------------------

void Isr::ReceiveFlits(FlitRun&& run) {
  Packet* p = context_.packets.Take();
  p->ResetState();
  p->header = std::move(run.header);
  p->segment = {run.arrival, run.spacing, run.first, run.count};
  p->run_has_tail = run.tail;
  p->poisoned = run.poisoned;
  p->run_generation = run.generation;
  p->in = run.port;
  p->in_vc = run.vc;
  context_.queue.Push(run.arrival,
                      EventKey(EventClass::kFlit, run.port, run.vc,
                               static_cast<std::uint64_t>(FlitEvent::kRun)),
                      reinterpret_cast<std::uint64_t>(p));
}

void Isr::ReceiveCredits(const CreditRun& run) {
  OutputPort& out = outputs_[run.port];
  if (run.generation < out.generation) return;
  out.vc[run.vc].credits.Announce(run.arrival, run.spacing, run.count, run.generation);
  // Credits need no event of their own unless somebody waits for them.
  if (out.stall_since >= 0 && run.arrival < out.wake_at) {
    out.wake_at = run.arrival;
    context_.queue.Push(run.arrival, EventKey(EventClass::kCredit, run.port, 0, 0), 0);
  }
}

void Isr::ReceiveMark(const PoisonMark& mark) {
  PoisonMark* copy = marks_.Take();
  *copy = mark;
  context_.queue.Push(mark.arrival,
                      EventKey(EventClass::kFlit, mark.port, mark.vc,
                               static_cast<std::uint64_t>(FlitEvent::kMark)),
                      reinterpret_cast<std::uint64_t>(copy));
}

void Isr::OnRun(Packet* run) {
  const PortId port = run->in;
  if (run->run_generation != outputs_[port].generation) {
    // Lost on a wire that died: counted where it would have arrived (B.7).
    context_.CountDrop(DropReason::kLinkDown, run->segment.count, run->run_has_tail ? 1 : 0);
    context_.Release(run);
    return;
  }
  InputFifo& fifo = LinkFifo(port, run->in_vc);
  fifo.held = static_cast<std::uint16_t>(fifo.held + run->segment.count);
  PERCS_CHECK(fifo.held <= BufferSlots(port));
  if (run->segment.first == 0) {
    BeginPacket(fifo, run);
  } else {
    ContinuePacket(fifo, run);
  }
}

void Isr::BeginPacket(InputFifo& fifo, Packet* p) {
  p->announced = p->segment.count;
  p->length = p->run_has_tail ? p->announced : p->header.flits;
  p->out = router_.Route(p->header, fifo.port);
  if (p->out == kNoPort) {
    p->draining = true;
    p->reason = DropReason::kNoRoute;
  } else if (!IsHfi(p->out)) {
    const Position next = NextPosition(PositionOf(fifo.port, fifo.vc), p->out);
    const bool single = context_.parameters->vc_policy == VcPolicy::kSingle;
    if (!single && next == kNoPosition) {
      p->draining = true;
      p->reason = DropReason::kNoVcPosition;
    } else if (!outputs_[p->out].up) {
      p->draining = true;
      p->reason = outputs_[p->out].connected ? DropReason::kLinkDown : DropReason::kNoRoute;
    } else {
      p->out_vc = single ? VcId{0} : VcOfPosition(next);
    }
  } else {
    p->out_vc = 0;
  }
  fifo.PushBack(p);
  if (fifo.head != p) return;
  if (fifo.busy_until <= context_.now) {
    BecomeFront(fifo);
  } else {
    ScheduleFifo(fifo, fifo.busy_until);
  }
}

void Isr::ContinuePacket(InputFifo& fifo, Packet* run) {
  Packet* p = fifo.tail;
  PERCS_CHECK(p != nullptr && p->header.sequence == run->header.sequence &&
              p->announced == run->segment.first);
  p->Announce(run->segment);
  if (run->run_has_tail) {
    p->length = p->announced;
    p->poisoned = p->poisoned || run->poisoned;
  }
  context_.Release(run);
  if (p == fifo.head && fifo.busy_until <= context_.now) BecomeFront(fifo);
}

void Isr::OnInjected(Packet* p) {
  InputFifo& fifo = QueueFifo(p->in, p->out);
  p->segment = {context_.now, 0, 0, p->header.flits};
  p->length = p->announced = p->header.flits;
  p->out_vc = 0;
  fifo.PushBack(p);
  if (fifo.head != p) return;
  if (fifo.busy_until <= context_.now) {
    BecomeFront(fifo);
  } else {
    ScheduleFifo(fifo, fifo.busy_until);
  }
}

// --- The front of a FIFO --------------------------------------------------------------------------

void Isr::BecomeFront(InputFifo& fifo) {
  Packet* p = fifo.head;
  if (!p->draining && !outputs_[p->out].up) {
    p->draining = true;
    p->reason = DropReason::kLinkDown;
  }
  if (p->draining) {
    Drain(fifo);
  } else {
    RequestWhenEligible(fifo);
  }
}

Time Isr::Eligible(const Packet& p) const {
  if (IsHfi(p.in)) return context_.now;
  if (p.begun) return p.announced > p.sent ? p.ArrivalOf(p.sent) : kNever;
  const Time f = outputs_[p.out].flit_time;
  Time e = kNever;
  if (p.complete()) {
    const auto latest = [f](const Segment& s) {
      // a_i - i x f is linear within a run: its maximum is at one end.
      return std::max(s.start - s.first * f, s.last() - (s.first + s.count - 1) * f);
    };
    e = latest(p.segment);
    for (const Segment& s : p.more) e = std::max(e, latest(s));
  }
  const int slots = BufferSlots(p.in);
  if (slots < p.length && p.announced >= slots) e = std::min(e, p.ArrivalOf(slots - 1));
  return e;
}

void Isr::RequestWhenEligible(InputFifo& fifo) {
  if (fifo.head->requesting) return;
  const Time e = Eligible(*fifo.head);
  if (e <= context_.now) {
    Request(fifo);
  } else if (e < kNever) {
    ScheduleFifo(fifo, e);
  }
}

void Isr::Request(InputFifo& fifo) {
  Packet* p = fifo.head;
  p->requesting = true;
  OutputPort& out = outputs_[p->out];
  out.vc[p->out_vc].requests.Set(fifo.index());
  ++out.requests;
  dirty_ |= PortBit(p->out);
}

void Isr::ClearRequest(InputFifo& fifo) {
  Packet* p = fifo.head;
  if (!p->requesting) return;
  p->requesting = false;
  OutputPort& out = outputs_[p->out];
  out.vc[p->out_vc].requests.Clear(fifo.index());
  --out.requests;
  dirty_ |= PortBit(p->out);
}

void Isr::ScheduleFifo(InputFifo& fifo, Time at) {
  if (at == fifo.busy_until) {
    if (fifo.advance_scheduled) return;
    fifo.advance_scheduled = true;
  }
  const bool queue = fifo.queue_output != kNoPort;
  context_.queue.Push(at,
                      EventKey(EventClass::kTimer, fifo.port, queue ? fifo.queue_output : fifo.vc,
                               static_cast<std::uint64_t>(TimerEvent::kFifo)),
                      0);
}

void Isr::OnFifoTimer(PortId port, int vc_or_output) {
  InputFifo& fifo = IsHfi(port) ? QueueFifo(port, static_cast<PortId>(vc_or_output))
                                : LinkFifo(port, static_cast<VcId>(vc_or_output));
  if (fifo.busy_until > context_.now) return;  // told before a later commitment; that one has its own
  fifo.advance_scheduled = false;
  if (fifo.room_wanted) {
    fifo.room_wanted = false;
    listener_.OnQueueRoom();
  }
  if (fifo.head) {
    if (!fifo.head->draining && fifo.head->begun) dirty_ |= PortBit(fifo.head->out);
    BecomeFront(fifo);
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

// --- Arbitration ----------------------------------------------------------------------------------

void Isr::Arbitrate() {
  while (dirty_) {
    const int port = std::countr_zero(dirty_);
    dirty_ &= dirty_ - 1;
    ArbitrateOutput(static_cast<PortId>(port));
  }
}

void Isr::ArbitrateOutput(PortId port) {
  OutputPort& out = outputs_[port];
  const Time now = context_.now;
  if (out.busy_until > now) {
    if (out.requests > 0) ScheduleFree(port, out);
    return;
  }
  int winner = -1;
  if (out.requests > 0) {
    if (out.unfinished && out.busy_until == now && CanContinue(out)) {
      winner = out.unfinished_index;
    } else {
      RequestSet candidates;
      bool stalled = false;
      Time wake = kNever;
      for (int v = 0; v < out.vcs; ++v) {
        OutputVc& vc = out.vc[static_cast<std::size_t>(v)];
        if (vc.owner ? !vc.requests.Has(vc.owner_index) : !vc.requests.any()) continue;
        if (vc.credits.Available(now) < 1) {
          stalled = true;
          wake = std::min(wake, vc.credits.Next());
        } else if (vc.owner) {
          candidates.Set(vc.owner_index);
        } else {
          candidates.Merge(vc.requests);
        }
      }
      winner = candidates.FirstAfter(out.pointer);
      if (winner < 0) {
        UpdateStall(port, out, stalled);
        if (wake < out.wake_at) {
          out.wake_at = wake;
          context_.queue.Push(wake, EventKey(EventClass::kCredit, port, 0, 0), 0);
        }
        return;
      }
      out.pointer = winner;
    }
  }
  UpdateStall(port, out, false);
  if (winner < 0) return;
  const PortId in = static_cast<PortId>(winner / 3);
  Commit(port, out, IsHfi(in) ? QueueFifo(in, port) : LinkFifo(in, static_cast<VcId>(winner % 3)));
}

void Isr::ScheduleFree(PortId port, OutputPort& out) {
  if (out.free_scheduled) return;
  out.free_scheduled = true;
  context_.queue.Push(
      out.busy_until,
      EventKey(EventClass::kTimer, port, 0xff, static_cast<std::uint64_t>(TimerEvent::kOutputFree)), 0);
}

bool Isr::CanContinue(OutputPort& out) {
  OutputVc& vc = out.vc[out.unfinished->out_vc];
  return vc.owner == out.unfinished && vc.requests.Has(out.unfinished_index) &&
         vc.credits.Available(context_.now) >= 1;
}

void Isr::UpdateStall(PortId port, OutputPort& out, bool stalled) {
  if (stalled) {
    if (out.stall_since < 0) out.stall_since = context_.now;
  } else if (out.stall_since >= 0) {
    context_.stats.ports[port].credit_stall_ps +=
        static_cast<std::uint64_t>(context_.now - out.stall_since);
    out.stall_since = -1;
  }
}

int Isr::CommitmentLength(OutputPort& out, const Packet& p) {
  const Time now = context_.now, f = out.flit_time;
  const int rest = p.announced - p.sent;
  int m;
  if (p.more.empty() && p.segment.spacing <= f) {
    m = rest;  // the first is there and the others keep up
  } else {
    m = 1;
    while (m < rest && p.ArrivalOf(p.sent + m) <= now + m * f) ++m;
  }
  return out.vc[p.out_vc].credits.Certain(now, f, m);
}

void Isr::Commit(PortId port, OutputPort& out, InputFifo& fifo) {
  Packet* p = fifo.head;
  const Time now = context_.now, f = out.flit_time;
  OutputVc& vc = out.vc[p->out_vc];
  vc.credits.Available(now);
  const int m = CommitmentLength(out, *p);
  PERCS_CHECK(m >= 1);
  vc.credits.Take(m);
  const bool tail = p->sent + m == p->length;

  PortStats& stats = context_.stats.ports[port];
  stats.flits += static_cast<std::uint64_t>(m);
  const int from = p->sent * kFlitBytes;
  stats.bytes += static_cast<std::uint64_t>(
      std::clamp(p->header.bytes - from, 0, m * kFlitBytes));
  ++stats.runs;
  if (tail) {
    ++stats.packets;
  } else {
    ++stats.runs_split;
  }

  p->requesting = false;
  vc.requests.Clear(fifo.index());
  --out.requests;
  out.busy_until = fifo.busy_until = now + m * f;
  int slots = m;
  if (p->spare_slot && tail) --slots;
  fifo.commitment_flit_time = f;
  fifo.commitment_flits = static_cast<std::uint16_t>(m);
  fifo.commitment_has_spare = slots < m;
  if (fifo.queue_output == kNoPort) {
    fifo.held = static_cast<std::uint16_t>(fifo.held - slots);
    ReturnCredits(fifo, now + f, f, slots);
  }
  fifo.advance_scheduled = false;
  if (tail) {
    vc.owner = nullptr;
    out.unfinished = nullptr;
    fifo.PopFront();
    SendRun(port, out, fifo, p, m, true);
    FinishFront(fifo);
  } else {
    vc.owner = p;
    vc.owner_index = out.unfinished_index = fifo.index();
    out.unfinished = p;
    SendRun(port, out, fifo, p, m, false);
    p->begun = true;
    p->sent = static_cast<std::uint8_t>(p->sent + m);
    ScheduleFifo(fifo, fifo.busy_until);
  }
  if (out.requests > 0) ScheduleFree(port, out);
}

void Isr::FinishFront(InputFifo& fifo) {
  if (fifo.queue_output != kNoPort) {
    --fifo.packets;
    if (fifo.head || fifo.room_wanted) ScheduleFifo(fifo, fifo.busy_until);
  } else if (fifo.head) {
    ScheduleFifo(fifo, fifo.busy_until);
  }
}

void Isr::SendRun(PortId port, OutputPort& out, InputFifo& fifo, Packet* p, int count, bool tail) {
  const Time f = out.flit_time;
  const Time arrival = context_.now + context_.parameters->isr_latency + f + out.wire;
  const bool head = p->sent == 0;
  if (head) {
    const std::uint64_t hop = ((static_cast<std::uint64_t>(context_.node) << 8) | port) + 1;
    p->header.path = Mix64(p->header.path ^ hop);
    if (!IsHfi(port)) ++p->header.hops;
  }
  const Time tail_onward = arrival + (count - 1) * f;
  if (tail && !IsHfi(p->in) && p->last_segment().last() > context_.now) {
    NoteDeparted(fifo, *p, out, tail_onward);
  } else if (tail) {
    fifo.departed.source = kNoNode;
  }
  if (IsHfi(port)) {
    if (!tail) return;
    listener_.OnEjected(port, p, tail_onward);
    return;
  }
  const VcId vc = p->out_vc;
  if (out.local) {
    Packet* run = out.local->context_.packets.Take();
    run->ResetState();
    if (head && tail) {
      run->header = std::move(p->header);
    } else if (head) {
      run->header = p->header;
    } else {
      run->header.source = p->header.source;
      run->header.sequence = p->header.sequence;
    }
    run->segment = {arrival, f, p->sent, static_cast<std::uint8_t>(count)};
    run->run_has_tail = tail;
    run->poisoned = tail && p->poisoned;
    run->run_generation = out.generation;
    run->in = out.peer_port;
    run->in_vc = vc;
    out.local->context_.queue.Push(
        arrival,
        EventKey(EventClass::kFlit, out.peer_port, vc, static_cast<std::uint64_t>(FlitEvent::kRun)),
        reinterpret_cast<std::uint64_t>(run));
  } else {
    out.outbox->flits.push_back({arrival, f, out.peer, out.peer_port, vc,
                                 static_cast<std::uint8_t>(count), p->sent, tail,
                                 tail && p->poisoned, out.generation, p->header});
  }
  if (tail) context_.Release(p);
}

void Isr::ReturnCredits(InputFifo& fifo, Time first_free, Time spacing, int count) {
  OutputPort& back = outputs_[fifo.port];  // credits leave on the reverse direction of the link
  if (!back.up || count == 0) return;
  PERCS_CHECK(count > 0);
  const CreditRun run{first_free + back.wire + context_.parameters->credit_processing,
                      spacing,
                      back.peer,
                      back.peer_port,
                      fifo.vc,
                      static_cast<std::uint16_t>(count),
                      back.generation};
  if (back.local) {
    back.local->ReceiveCredits(run);
  } else {
    back.outbox->credits.push_back(run);
  }
}

// --- HFI side -------------------------------------------------------------------------------------

bool Isr::QueueHasRoom(PortId hfi_port, PortId output) {
  InputFifo& fifo = QueueFifo(hfi_port, output);
  // The packet that left last holds its place until its tail has left; one that has begun is counted
  // in `packets` until then.
  const bool leaving = fifo.busy_until > context_.now && !(fifo.head && fifo.head->begun);
  if (fifo.packets + (leaving ? 1 : 0) < context_.parameters->hfi_queue_packets) return true;
  fifo.room_wanted = true;
  if (leaving) ScheduleFifo(fifo, fifo.busy_until);
  return false;
}

void Isr::ReserveQueue(PortId hfi_port, PortId output) { ++QueueFifo(hfi_port, output).packets; }

void Isr::ReturnEjectionCredits(PortId port, int flits) {
  ReceiveCredits({context_.now + context_.parameters->credit_processing, 0, context_.node, port, 0,
                  static_cast<std::uint16_t>(flits), outputs_[port].generation});
}

}  // namespace percs
