// What a dying and a returning link do to the switch (docs/semantics.md B.7).
#include <algorithm>

#include "emulator/base/check.h"
#include "emulator/isr/isr.h"
#include "emulator/sim/fabric.h"

namespace percs {

void Isr::LinkDown(PortId port) {
  OutputPort& out = outputs_[port];
  if (!out.up) return;
  out.up = false;
  ++out.generation;
  UpdateStall(port, out, false);
  for (int v = 0; v < out.vcs; ++v) {
    OutputVc& vc = out.vc[static_cast<std::size_t>(v)];
    vc.credits.Drop(out.generation);
    vc.owner = nullptr;
  }
  out.unfinished = nullptr;
  // Arrivals first: they may end a packet that is then drained below.
  for (int v = 0; v < out.vcs; ++v) LoseArrivals(LinkFifo(port, static_cast<VcId>(v)), port);
  for (InputFifo& fifo : link_fifos_) {
    if (fifo.head && fifo.head->out == port) DoomFront(fifo);
  }
  for (std::vector<InputFifo>& queues : queue_fifos_) {
    if (!queues.empty() && queues[port].head) DoomFront(queues[port]);
  }
}

void Isr::DoomFront(InputFifo& fifo) {
  // Behind a commitment that still runs only a packet that has begun is the front.
  if (fifo.head->draining || (!fifo.head->begun && fifo.busy_until > context_.now)) return;
  ClearRequest(fifo);
  fifo.head->draining = true;
  fifo.head->reason = DropReason::kLinkDown;
  if (fifo.busy_until <= context_.now) Drain(fifo);
}

void Isr::Drain(InputFifo& fifo) {
  Packet* p = fifo.head;
  const Time now = context_.now;
  int dropped = 0;
  while (p->sent < p->announced && p->ArrivalOf(p->sent) <= now) {
    ++p->sent;
    ++dropped;
  }
  const bool tail = p->sent == p->length;
  if (dropped > 0) {
    context_.CountDrop(p->reason, dropped, tail ? 1 : 0);
    const int slots = dropped - (tail && p->spare_slot ? 1 : 0);
    if (fifo.queue_output == kNoPort) {
      fifo.held = static_cast<std::uint16_t>(fifo.held - slots);
      ReturnCredits(fifo, now, 0, slots);
    }
  }
  if (!tail) {
    if (p->announced > p->sent) ScheduleFifo(fifo, p->ArrivalOf(p->sent));
    return;
  }
  fifo.PopFront();
  fifo.departed.source = kNoNode;
  context_.Release(p);
  if (fifo.queue_output != kNoPort) {
    --fifo.packets;
    listener_.OnQueueRoom();
  }
  if (fifo.head) BecomeFront(fifo);
}

// Flits of the packet that is arriving on this FIFO, announced for now or later, never come.
void Isr::LoseArrivals(InputFifo& fifo, PortId port) {
  if (!fifo.tail) {
    PoisonDeparted(fifo);
    return;
  }
  Packet* p = fifo.tail;
  if (p->complete() && p->last_segment().last() < context_.now) return;
  LoseAnnounced(*p);
  if (p == fifo.head && fifo.busy_until <= context_.now && !p->requesting) BecomeFront(fifo);
}

void Isr::LoseAnnounced(Packet& p) {
  const Time now = context_.now;
  const Segment last = p.last_segment();
  int lost = 0;
  while (lost < last.count && last.arrival(last.count - 1 - lost) >= now) ++lost;
  const bool tail = p.complete();
  context_.CountDrop(DropReason::kLinkDown, lost, tail ? 1 : 0);
  context_.stats.flits_synthesised += static_cast<std::uint64_t>(lost);
  ++context_.stats.packets_synthesised;
  ++context_.work->resident;
  p.poisoned = true;
  if (tail) return;
  ++context_.stats.flits_synthesised;
  p.spare_slot = true;
  p.Announce({std::max(now, last.last() + last.spacing), 0, p.announced, 1});
  p.length = p.announced;
}

void Isr::NoteDeparted(InputFifo& fifo, const Packet& p, const OutputPort& out, Time tail_onward) {
  fifo.departed = {p.header.source, p.header.sequence, p.last_segment(), p.out, p.out_vc, tail_onward,
                   out.generation, IsHfi(p.out) ? const_cast<Packet*>(&p) : nullptr};
}

void Isr::PoisonDeparted(InputFifo& fifo) {
  InputFifo::Departed& gone = fifo.departed;
  if (gone.source == kNoNode || gone.last.last() < context_.now) return;
  int lost = 0;
  while (lost < gone.last.count && gone.last.arrival(gone.last.count - 1 - lost) >= context_.now) ++lost;
  context_.CountDrop(DropReason::kLinkDown, lost, 1);
  context_.stats.flits_synthesised += static_cast<std::uint64_t>(lost);
  ++context_.stats.packets_synthesised;
  ++context_.work->resident;
  OnMark({context_.now, context_.node, fifo.port, fifo.vc, gone.source, gone.sequence,
          outputs_[fifo.port].generation});
}

void Isr::OnMark(const PoisonMark& mark) {
  if (mark.generation != outputs_[mark.port].generation) return;  // the tail itself was lost
  InputFifo& fifo = LinkFifo(mark.port, mark.vc);
  Packet* p = fifo.tail;
  if (p && p->header.source == mark.source && p->header.sequence == mark.sequence) {
    p->poisoned = true;
    return;
  }
  InputFifo::Departed& gone = fifo.departed;
  if (gone.source != mark.source || gone.sequence != mark.sequence) return;
  if (gone.ejecting) {
    gone.ejecting->poisoned = true;
    return;
  }
  const OutputPort& out = outputs_[gone.out];
  const PoisonMark onward{gone.tail_onward, out.peer,     out.peer_port,  gone.out_vc,
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
  const Time now = context_.now;
  for (int v = 0; v < out.vcs; ++v) {
    InputFifo& fifo = LinkFifo(port, static_cast<VcId>(v));
    const int flits_leaving = fifo.FlitsLeavingAfter(now);
    const int slots_leaving =
        flits_leaving > 0 && fifo.commitment_has_spare ? flits_leaving - 1 : flits_leaving;
    ReturnCredits(fifo, now, 0, BufferSlots(port) - fifo.held - slots_leaving);
    // Flits committed before and leaving after return theirs at their own times.
    const Time f = fifo.commitment_flit_time;
    ReturnCredits(fifo, fifo.busy_until - (flits_leaving - 1) * f, f, slots_leaving);
  }
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
  }
  return missing;
}

void Isr::CollectWaits(std::vector<WaitEdge>* edges) const {
  const auto add = [&](const InputFifo& fifo) {
    const Packet* p = fifo.head;
    if (!p || p->draining || p->out == kNoPort) return;
    edges->push_back({context_.node, fifo.port, p->out, fifo.vc, p->out_vc});
  };
  for (const InputFifo& fifo : link_fifos_) add(fifo);
  for (const std::vector<InputFifo>& queues : queue_fifos_) {
    for (const InputFifo& fifo : queues) add(fifo);
  }
}

}  // namespace percs
