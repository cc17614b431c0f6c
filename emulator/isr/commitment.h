// What a grant does: flits of a packet leave through an output (docs/semantics.md B.4 and B.6). One
// path with isr.cc, which alone includes it: the compiler joins the two.
#pragma once

#include "emulator/base/random.h"
#include "emulator/isr/isr.h"

namespace percs {

inline int Isr::FlitsInTime(const OutputPort& out, const Packet& p) const {
  const int rest = p.announced - p.sent;
  const Time f = out.flit_time;
  if (p.one_run() && p.segment.spacing <= f) return rest;  // the first is there, the others keep up
  int m = 1;
  while (m < rest && p.ArrivalOf(p.sent + m) <= context_.now + m * f) ++m;
  return m;
}

// Only the last flit of a packet may not be full; one that a poison tail cuts short does not get
// there.
inline void Isr::CountCommitment(PortId port, OutputPort& out, const Packet& p, int sent, int count,
                                 bool tail) {
  OutputVc& vc = out.vc[p.out_vc];
  vc.flits += static_cast<std::uint64_t>(count);
  flits_sent_ += static_cast<std::uint64_t>(count);
  if (!tail) {
    ++context_.stats.ports[port].vc[p.out_vc].runs_split;
    return;
  }
  ++vc.packets;
  const int room = (sent + count) * kFlitBytes - p.header.bytes;
  if (room > 0) vc.unfilled += static_cast<std::uint64_t>(room);
}

// Credits of the HFI are returned when they are looked at: when a commitment might take the last of
// them.
inline void Isr::CollectEjectionCredits(PortId port, OutputPort& out) {
  if (IsHfi(port) && out.vc[0].credits.counted() <= kPacketFlitsMax) listener_.OnCreditsWanted();
}

inline bool Isr::HasCredit(PortId port, OutputPort& out, OutputVc& vc) {
  CollectEjectionCredits(port, out);
  return vc.credits.Any(context_.now);
}

template <bool whole>
void Isr::Commit(PortId port, OutputPort& out, InputBuffer& buffer, Packet* p, int count,
                 bool queue) {
  const Time f = out.flit_time;
  Time start = context_.now;
  if (out.errors) [[unlikely]]
    start = Transmit(port, out, p, count);
  const int sent = whole ? 0 : p->sent;
  const bool tail = whole || sent + count == p->length;
  CountCommitment(port, out, *p, sent, count, tail);

  OutputVc& vc = out.vc[p->out_vc];
  out.busy_until = start + count * f;
  const bool branch = !whole && p->branch != 0;  // its slots stay until all of its packet have left
  out.committed_flits = static_cast<std::uint8_t>(branch ? 0 : count);
  out.committed_port = buffer.port;
  out.committed_vc = buffer.vc;
  out.committed_spare = tail && p->spare_slot;
  if (!queue && !branch) {
    const int slots = count - (out.committed_spare ? 1 : 0);
    buffer.held = static_cast<std::uint16_t>(buffer.held - slots);
    if (whole) {
      SendCredits(buffer, start + f, f, slots);
    } else {
      ReturnCredits(buffer, start + f, f, slots);
    }
  }
  Packet* behind = p->next;  // the next front is there: p was the first for this output
  if (tail) {
    vc.owner = nullptr;
    out.unfinished = nullptr;
    if (whole) {
      buffer.newest = nullptr;  // it has come and gone
    } else {
      buffer.Remove(p);
    }
    if (branch) {
      EndBranch(buffer, *p, out.busy_until);
      behind = buffer.head;  // that may have taken any packet away
    } else if (queue) {
      --buffer.packets;
      static_cast<HfiQueue&>(buffer).tail_leaves = out.busy_until;
      if (buffer.queue.room_wanted) Wake(buffer, port, out.busy_until);
    }
  } else {
    vc.owner = out.unfinished = p;
    vc.owner_index = out.unfinished_index = static_cast<std::int16_t>(buffer.index());
  }
  SendRun(port, out, buffer, p, start, sent, count, tail, queue);
  if (whole) return;
  if (tail) {
    if (Packet* next = InputBuffer::FrontFrom(behind, port)) Advance(buffer, next);
  } else {
    p->begun = true;
    p->sent = static_cast<std::uint8_t>(sent + count);
    Wake(buffer, port, out.busy_until);
  }
  if (out.requested_vcs != 0 || ServiceWaits(port)) ScheduleFree(port, out);
}

inline void Isr::SendRun(PortId port, OutputPort& out, InputBuffer& buffer, Packet* p, Time start,
                         int sent, int count, bool tail, bool queue) {
  if (p->header.traced) [[unlikely]]
    TraceGrant(port, out, *p, start, sent, count, tail);
  const Time f = out.flit_time;
  const Time arrival = start + context_.parameters->isr_latency + f + out.wire;
  if (sent == 0) {
    const std::uint64_t hop = ((static_cast<std::uint64_t>(context_.node) << 8) | port) + 1;
    p->header.path = Mix64(p->header.path ^ hop);
    if (!IsHfi(port)) ++p->header.hops;
  }
  const Time tail_onward = arrival + (count - 1) * f;
  // (A run of one flit has arrived.)
  if (tail && count > 1 && !queue && !p->ended && p->last_segment().last() > context_.now) {
    NoteDeparted(buffer, *p, out, tail_onward);
  }
  if (IsHfi(port)) {
    if (tail) listener_.OnEjected(port, p, tail_onward);
    return;
  }
  if (out.local || out.outbox->takes_packets) {
    SendPacket(out, p, arrival, sent, count, tail);
  } else {
    FlitRun& run = out.outbox->flits.emplace_back();
    run.arrival = arrival;
    run.spacing = f;
    run.node = out.peer;
    run.port = out.peer_port;
    run.vc = p->out_vc;
    run.count = static_cast<std::uint8_t>(count);
    run.first = static_cast<std::uint8_t>(sent);
    run.tail = tail;
    run.tail_marks = tail ? p->tail_marks : std::uint8_t{0};
    run.generation = out.generation;
    run.header.Assign(p->header);
    if (tail) context_.Release(p);
  }
}

// The run goes straight into a packet object of the next hub: that of the packet itself if it
// leaves whole.
inline void Isr::SendPacket(const OutputPort& out, Packet* p, Time arrival, int sent, int count,
                            bool tail) {
  const VcId vc = p->out_vc;
  const std::uint8_t tail_marks = tail ? p->tail_marks : 0;
  Packet* run = p;
  if (sent != 0 || !tail) {
    run = context_.packets.Take();
    if (sent == 0) {
      run->header.Assign(p->header);
    } else {
      run->header.source = p->header.source;
      run->header.sequence = p->header.sequence;
    }
    if (tail) context_.Release(p);
  }
  run->ResetState();
  run->segment = {arrival, out.flit_time, static_cast<std::uint8_t>(sent),
                  static_cast<std::uint8_t>(count)};
  run->run_has_tail = tail;
  run->tail_marks = tail_marks;
  run->run_generation = out.generation;
  run->in = out.peer_port;
  run->in_vc = vc;
  if (out.local) {
    PushRun(*out.queue, arrival, out.peer_port, vc, run);
  } else {
    out.outbox->packets.push_back({arrival, run, out.peer, out.peer_port, vc});
  }
}

}  // namespace percs
