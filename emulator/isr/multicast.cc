// Replication of multicast packets (docs/semantics.md B.9; paper 000 section VI): from a buffer
// that holds the whole packet, branch by branch. No branch waits for another, and none holds a part
// of a packet that another would have to wait for.
#include <algorithm>
#include <bit>

#include "emulator/base/check.h"
#include "emulator/isr/isr.h"

namespace percs {

void Isr::Replicate(InputBuffer& buffer, Packet* p) {
  Packet* const newest = buffer.newest == p ? nullptr : buffer.newest;
  buffer.Remove(p);
  const int slots = p->length - (p->spare_slot ? 1 : 0);
  DropReason reason = DropReason::kTruncated;
  PortMask ports = p->tail_marks & kPoisonMark ? 0 : router_.Branches(p->header, &reason);
  if (ports == 0) {
    context_.CountDrop(reason, p->length, 1);
    if (p->header.traced) context_.Tracer().Dropped(*p, context_.now, reason, p->length);
    context_.Release(p);
    FreeSlots(buffer, slots);
    return;
  }
  const int copies = std::popcount(ports) - 1;
  context_.stats.packets_replicated += static_cast<std::uint64_t>(copies);
  context_.stats.flits_replicated += static_cast<std::uint64_t>(copies * p->length);
  context_.work->resident += copies;
  Replica replica{&buffer, FreeReplica(buffer), 0, slots, context_.now};
  for (; ports; ports &= ports - 1) {
    const PortId port = static_cast<PortId>(std::countr_zero(ports));
    const PortId out = IsHfi(port) ? router_.WindowPort(p->header.destination_window) : port;
    replica.branches += StartBranch(buffer, replica.number, *p, out);
  }
  if (p->header.traced) context_.Tracer().Forget(*p);
  context_.Release(p);
  buffer.newest = newest;
  if (replica.branches > 0) {
    replicas_.push_back(replica);
  } else {
    FreeSlots(buffer, slots);
  }
}

// A number that no replica of the buffer has: fewer packets fit into it.
std::uint16_t Isr::FreeReplica(const InputBuffer& buffer) const {
  std::uint16_t number = 1;
  const auto taken = [&](const Replica& r) { return r.buffer == &buffer && r.number == number; };
  while (std::any_of(replicas_.begin(), replicas_.end(), taken)) ++number;
  return number;
}

// False if the branch is dropped at once.
bool Isr::StartBranch(InputBuffer& buffer, std::uint16_t replica, const Packet& whole, PortId out) {
  Packet* b = context_.packets.Take();
  b->ResetState();
  b->header = whole.header;
  b->in = whole.in;
  b->in_vc = whole.in_vc;
  b->out = out;
  b->out_vc = 0;
  b->segment = {context_.now, 0, 0, whole.length};
  b->length = b->announced = whole.length;
  b->branch = replica;
  b->tail_marks = whole.tail_marks;
  b->reason = DropReason::kLinkDown;
  bool drop = !outputs_[out].up;
  if (out < kLinkPorts && context_.parameters->vc_policy == VcPolicy::kPosition) {
    const Position next = graph_ ? NextInGraph(buffer, *b) : NextPosition(b->header.position, out);
    if (next == kNoPosition) {
      drop = true;
      b->reason = DropReason::kNoVcPosition;
    } else {
      b->out_vc = VcOfPosition(next);
    }
  }
  if (b->header.traced) context_.Tracer().Branched(*b, context_.now);
  if (drop) {
    context_.CountDrop(b->reason, b->length, 1);
    if (b->header.traced) context_.Tracer().Dropped(*b, context_.now, b->reason, b->length);
    context_.Release(b);
    return false;
  }
  buffer.PushBack(b);
  if (buffer.Front(out) == b) Advance(buffer, b);
  return true;
}

// The last flit of a branch leaves at `leaves`, or was dropped.
void Isr::EndBranch(InputBuffer& buffer, const Packet& p, Time leaves) {
  const auto replica = std::find_if(replicas_.begin(), replicas_.end(), [&](const Replica& r) {
    return r.buffer == &buffer && r.number == p.branch;
  });
  PERCS_CHECK(replica != replicas_.end());
  replica->free_at = std::max(replica->free_at, leaves);
  if (--replica->branches > 0) return;
  if (replica->free_at > context_.now) {
    replica->awaited = true;
    ++context_.work->unfinished;
    Wake(buffer, kReplication, replica->free_at);
  } else {
    ReleaseReplicas(buffer);
  }
}

// The last branch of a replica has left, or a packet is whole. Several packets may be incomplete:
// after a short flap the next one arrives while synthesised flits of the previous one are still to
// come (B.7).
void Isr::OnReplicationTimer(InputBuffer& buffer) {
  ReleaseReplicas(buffer);
  for (Packet* p = buffer.head; p;) {
    Packet* next = p->next;
    const bool whole = p->complete() && p->last_segment().last() <= context_.now;
    if (p->out == kReplication && whole) Advance(buffer, p);
    p = next;
  }
}

void Isr::ReleaseReplicas(InputBuffer& buffer) {
  std::erase_if(replicas_, [&](const Replica& r) {
    if (r.buffer != &buffer || r.branches > 0 || r.free_at > context_.now) return false;
    FreeSlots(buffer, r.slots);
    if (r.awaited) --context_.work->unfinished;
    return true;
  });
}

void Isr::FreeSlots(InputBuffer& buffer, int slots) {
  if (buffer.is_queue()) {
    --buffer.packets;
    buffer.queue.room_wanted = false;
    listener_.OnQueueRoom();
    return;
  }
  buffer.held = static_cast<std::uint16_t>(buffer.held - slots);
  ReturnCredits(buffer, context_.now, 0, slots);
}

}  // namespace percs
