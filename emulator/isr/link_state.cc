// What a link that goes down or comes up does to the switch (docs/semantics.md B.7).
#include <algorithm>

#include "emulator/base/check.h"
#include "emulator/chip/wait_edge.h"
#include "emulator/isr/isr.h"

namespace percs {

void Isr::LinkDown(PortId port) {
  OutputPort& out = outputs_[port];
  if (!out.up) return;
  out.up = false;
  ++out.generation;
  ++out.downs;
  SetStall(port, out, 0);
  for (int v = 0; v < out.vcs; ++v) {
    OutputVc& vc = out.vc[static_cast<std::size_t>(v)];
    vc.credits.Drop(out.generation);
    vc.owner = nullptr;
  }
  out.unfinished = nullptr;
  if (service_) ServiceDown(port);
  // Arrivals first: they may end a packet that is then drained below.
  for (int v = 0; v < out.vcs; ++v) LoseArrivals(LinkBuffer(port, static_cast<VcId>(v)));
  for (InputBuffer& buffer : link_buffers_) DoomPackets(buffer, port);
  for (std::vector<HfiQueue>& queues : queues_) {
    if (queues.empty()) continue;
    DoomPackets(queues[port], port);
    DoomPackets(queues[kReplication], port);
  }
}

void Isr::DoomPackets(InputBuffer& buffer, PortId port) {
  bool branches = false;
  for (Packet* p = buffer.head; p;) {
    Packet* next = p->next;
    if (p->out == port && !p->draining) {
      branches |= p->branch != 0;
      Doom(buffer, p);
    }
    p = next;
  }
  // Slots are looked at when flits come (`most_held`), and these are free before that.
  if (branches) ReleaseReplicas(buffer);
}

void Isr::Doom(InputBuffer& buffer, Packet* p) {
  ClearRequest(buffer, p);
  p->draining = true;
  p->reason = DropReason::kLinkDown;
  // The commitment of a packet that has begun plays out first; its end wakes the drain.
  const OutputPort& out = outputs_[p->out];
  const bool committed = p->begun && out.busy_until > context_.now &&
                         out.committed_port == buffer.port && out.committed_vc == buffer.vc;
  p->drains_from = committed ? out.busy_until : context_.now;
  if (p->begun && p->out < kLinkPorts) AwaitWire(p->out, p->drains_from);
  Drain(buffer, p);
}

// The rest of a packet may be drained before the flits that left ahead of it are lost on the wire.
// The run must not end before that, so they are work until the last of them, sent by `sent`, would
// have arrived.
void Isr::AwaitWire(PortId port, Time sent) {
  ++context_.work->unfinished;
  const Time longest = link_levels_[port] ? link_levels_[port]->latency_most : 0;
  context_.queue.Push(
      sent + context_.parameters->isr_latency + outputs_[port].wire + longest,
      EventKey(EventClass::kTimer, port, 0, static_cast<std::uint64_t>(TimerEvent::kWireEmpty)), 0);
}

void Isr::Drain(InputBuffer& buffer, Packet* p) {
  const Time now = context_.now;
  if (p->drains_from > now) return;
  int dropped = 0;
  while (p->sent < p->announced && p->ArrivalOf(p->sent) <= now) {
    ++p->sent;
    ++dropped;
  }
  const bool tail = p->sent == p->length;
  if (dropped > 0) {
    context_.CountDrop(p->reason, dropped, tail ? 1 : 0);
    if (p->header.traced) context_.Tracer().Dropped(*p, now, p->reason, dropped);
    if (!buffer.is_queue() && p->branch == 0) {
      const int slots = dropped - (tail && p->spare_slot ? 1 : 0);
      buffer.held = static_cast<std::uint16_t>(buffer.held - slots);
      ReturnCredits(buffer, now, 0, slots);
    }
  }
  if (!tail) {
    if (p->announced > p->sent) Wake(buffer, p->out, p->ArrivalOf(p->sent));
    return;
  }
  // A packet that had begun is counted at the other end, which has its head.
  if (p->reason == DropReason::kLinkDown && !p->begun && p->out < kLinkPorts)
    context_.CountLoss(p->out, p->header.kind);
  const bool branch = p->branch != 0;
  // The link over which its tail came may go down at this instant, too: then the tail never
  // arrived, and nothing of it was forwarded (no port).
  if (!buffer.is_queue() && !branch && !p->ended && p->last_segment().last() == now) {
    DepartedFrom(buffer) = {.source = p->header.source,
                            .sequence = p->header.sequence,
                            .last = p->last_segment(),
                            .kind = p->header.kind};
  }
  buffer.Remove(p);
  if (branch) EndBranch(buffer, *p, now);
  context_.Release(p);
  if (buffer.is_queue() && !branch) {
    --buffer.packets;
    buffer.queue.room_wanted = false;
    listener_.OnQueueRoom();
  }
}

// Flits of the packet that is arriving here, announced for now or later, never come.
void Isr::LoseArrivals(InputBuffer& buffer) {
  Packet* p = buffer.newest;
  if (!p) {
    PoisonDeparted(buffer);
    return;
  }
  // Flits synthesised when the link went down earlier are not on the wire and cannot be lost again.
  if (p->ended || (p->complete() && p->last_segment().last() < context_.now)) return;
  LoseAnnounced(*p);
  if (p->draining) {
    Drain(buffer, p);
  } else if (buffer.Acts(p)) {
    Advance(buffer, p);
  }
}

void Isr::LoseAnnounced(Packet& p) {
  const Time now = context_.now;
  const Segment last = p.last_segment();
  int lost = 0;
  while (lost < last.count && last.arrival(last.count - 1 - lost) >= now) ++lost;
  const bool tail = p.complete();
  context_.CountDrop(DropReason::kLinkDown, lost, tail ? 1 : 0);
  context_.CountLoss(p.in, p.header.kind);
  context_.stats.flits_synthesised += static_cast<std::uint64_t>(lost);
  ++context_.stats.packets_synthesised;
  ++context_.work->resident;
  p.tail_marks |= kPoisonMark;
  p.ended = true;
  if (tail) return;
  ++context_.stats.flits_synthesised;
  p.spare_slot = true;
  p.Announce({std::max(now, last.last() + last.spacing), 0, p.announced, 1});
  p.length = p.announced;
}

void Isr::NoteDeparted(InputBuffer& buffer, const Packet& p, const OutputPort& out,
                       Time tail_onward) {
  DepartedFrom(buffer) = {p.header.source,  p.header.sequence,
                          p.last_segment(), p.out,
                          p.out_vc,         tail_onward,
                          out.generation,   IsHfi(p.out) ? const_cast<Packet*>(&p) : nullptr,
                          p.header.kind};
}

void Isr::PoisonDeparted(InputBuffer& buffer) {
  const Departed& gone = DepartedFrom(buffer);
  if (gone.source == kNoNode || gone.last.last() < context_.now) return;
  int lost = 0;
  while (lost < gone.last.count && gone.last.arrival(gone.last.count - 1 - lost) >= context_.now)
    ++lost;
  context_.CountDrop(DropReason::kLinkDown, lost, 1);
  context_.CountLoss(buffer.port, gone.kind);
  context_.stats.flits_synthesised += static_cast<std::uint64_t>(lost);
  ++context_.stats.packets_synthesised;
  ++context_.work->resident;
  if (gone.out != kNoPort) {
    OnMark({context_.now, context_.node, buffer.port, buffer.vc, gone.source, gone.sequence,
            outputs_[buffer.port].generation});
  }
  DepartedFrom(buffer).source = kNoNode;
}

void Isr::OnMark(const PoisonMark& mark) {
  if (mark.generation != outputs_[mark.port].generation) return;  // the tail itself was lost
  InputBuffer& buffer = LinkBuffer(mark.port, mark.vc);
  Packet* p = buffer.newest;
  if (p && p->header.source == mark.source && p->header.sequence == mark.sequence) {
    p->tail_marks |= kPoisonMark;
    return;
  }
  const Departed& gone = DepartedFrom(buffer);
  if (gone.source != mark.source || gone.sequence != mark.sequence) return;
  if (gone.out == kNoPort) return;  // nothing of it was forwarded
  if (gone.ejecting) {
    gone.ejecting->tail_marks |= kPoisonMark;
    return;
  }
  const OutputPort& out = outputs_[gone.out];
  const PoisonMark onward{gone.tail_onward, out.peer,      out.peer_port,  gone.out_vc,
                          mark.source,      mark.sequence, gone.generation};
  if (out.local) {
    out.local->ReceiveMark(onward);
  } else {
    out.outbox->marks.push_back(onward);
  }
}

void Isr::LinkUp(PortId port) {
  OutputPort& out = outputs_[port];
  if (out.up) return;
  out.up = true;
  if (service_) ServiceUp(port);
  for (int v = 0; v < out.vcs; ++v) RegrantCredits(LinkBuffer(port, static_cast<VcId>(v)));
}

void Isr::ResetArbiters() {
  for (OutputPort& out : outputs_) {
    out.last_vc = -1;
    for (OutputVc& vc : out.vc) vc.pointer = -1;
    // Data and management packets take turns (B.10).
    if (out.committed_port == kServicePort && out.busy_until <= context_.now)
      out.committed_port = kNoPort;
  }
}

void Isr::Rewire(PortId port, LinkEnd peer, Isr* local, Outbox* outbox, bool swapped,
                 std::uint32_t generation) {
  OutputPort& out = outputs_[port];
  BeginGeneration(port, generation);
  out.peer = peer.node;
  out.peer_port = peer.port;
  SetWay(port, local, outbox);
  Mark(&swapped_, port, swapped);
}

void Isr::BeginGeneration(PortId port, std::uint32_t generation) {
  OutputPort& out = outputs_[port];
  PERCS_CHECK(!out.up && out.generation < generation);
  out.generation = generation;
  // The peer may have returned some at this instant, before it heard of the new generation.
  for (int v = 0; v < out.vcs; ++v) out.vc[static_cast<std::size_t>(v)].credits.Drop(generation);
  Retrain(port);
}

// Grants all free slots at once; slots of flits that were committed before and leave later, at
// their own times. Announced flits may use slots that are not free yet: those slots are reserved
// for them, earliest first, and return no credit.
void Isr::RegrantCredits(InputBuffer& buffer) {
  struct Leaving {
    Time first, spacing;
    int count;
  };
  std::vector<Leaving> leaving;
  int free = BufferSlots(buffer.port) - buffer.held;
  for (PortId port = 0; port < kPorts; ++port) {
    const OutputPort& out = outputs_[port];
    if (out.committed_port != buffer.port || out.committed_vc != buffer.vc) continue;
    const Time spacing = CommittedFlitTime(port);
    const int flits = out.FlitsLeavingAfter(context_.now, spacing);
    const int slots = flits - (flits > 0 && out.committed_spare ? 1 : 0);
    if (slots == 0) continue;
    free -= slots;
    leaving.push_back({out.busy_until - (flits - 1) * spacing, spacing, slots});
  }
  for (; free < 0; ++free) {
    auto earliest = leaving.end();
    for (auto it = leaving.begin(); it != leaving.end(); ++it) {
      if (it->count > 0 && (earliest == leaving.end() || it->first < earliest->first))
        earliest = it;
    }
    PERCS_CHECK(earliest != leaving.end());
    earliest->first += earliest->spacing;
    --earliest->count;
  }
  ReturnCredits(buffer, context_.now, 0, free);
  for (const Leaving& run : leaving) ReturnCredits(buffer, run.first, run.spacing, run.count);
}

std::uint64_t Isr::MissingCredits() const {
  std::uint64_t missing = 0;
  for (int port = 0; port < kServicePort; ++port) {
    const OutputPort& out = outputs_[static_cast<std::size_t>(port)];
    if (!out.up) continue;
    const int full = context_.parameters->link(ClassOf(static_cast<PortId>(port))).buffer_flits;
    for (int v = 0; v < out.vcs; ++v) {
      const int total = out.vc[static_cast<std::size_t>(v)].credits.Total();
      missing += static_cast<std::uint64_t>(total > full ? total - full : full - total);
    }
    if (!IsHfi(static_cast<PortId>(port)))
      missing += MissingServiceCredits(static_cast<PortId>(port));
  }
  return missing;
}

void Isr::CountWaiting(QueuedForD* by_d_port) const {
  const auto add = [&](const InputBuffer& buffer) {
    for (const Packet* p = buffer.head; p; p = p->next) {
      if (!IsD(p->out) || p->draining) continue;
      (*by_d_port)[static_cast<std::size_t>(p->out - kDFirst)] +=
          static_cast<std::uint32_t>(p->announced - p->sent);
    }
  };
  for (const InputBuffer& buffer : link_buffers_) add(buffer);
  for (const std::vector<HfiQueue>& queues : queues_) {
    if (queues.empty()) continue;
    for (PortId port = kDFirst; port < kHfiFirst; ++port) add(queues[port]);
    add(queues[kReplication]);
  }
}

void Isr::CollectWaits(std::vector<WaitEdge>* edges) const {
  const auto add = [&](const InputBuffer& buffer) {
    for (const Packet* p = buffer.head; p; p = p->next) {
      if (p->draining || buffer.Front(p->out) != p) continue;
      edges->push_back({context_.node, buffer.port, p->out, buffer.vc, p->out_vc});
    }
  };
  for (const InputBuffer& buffer : link_buffers_) add(buffer);
  for (const std::vector<HfiQueue>& queues : queues_) {
    for (const HfiQueue& queue : queues) add(queue);
  }
}

}  // namespace percs
