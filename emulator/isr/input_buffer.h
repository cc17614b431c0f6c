// One input buffer of the crossbar: a (link port, VC), or one output's queue on an HFI port. Its
// packets share its slots and queue per output: the first one for an output is that queue's front.
#pragma once

#include "emulator/base/check.h"
#include "emulator/isr/send_queue.h"
#include "emulator/packet/packet_state.h"

namespace percs {

// The newest packet of a link's buffer, when it left while flits of it were still announced only: a
// link that dies now must poison it where it went. Kept apart from the buffer, which is in the
// inner loop.
struct Departed {
  NodeId source = kNoNode;
  std::uint64_t sequence = 0;
  Segment last;  // its last run
  PortId out = kNoPort;
  VcId out_vc = 0;
  Time tail_onward = 0;  // when its tail reaches the next hub
  std::uint32_t generation = 0;
  Packet* ejecting = nullptr;  // out is an HFI port: the packet on its way to the HFI
  PacketKind kind = PacketKind::kRaw;
};

struct InputBuffer;

// A multicast packet whose branches are on their way out: its slots are free when the last one has
// left.
struct Replica {
  InputBuffer* buffer = nullptr;
  std::uint16_t number = 1;  // in its buffer, from 1
  int branches = 0;          // that have not left
  int slots = 0;
  Time free_at = 0;  // the last of those gone has left
  // Until then the slots are work: flits that left may all be lost before, and the run is not over.
  bool awaited = false;
};

struct alignas(32) InputBuffer {
  Packet* head = nullptr;  // in order of arrival
  Packet* tail = nullptr;
  Packet* newest = nullptr;  // the packet that arrived last, while it is here: flits may still come
  std::uint16_t held = 0;    // slots of flits announced and not committed
  union {
    std::uint16_t packets =
        0;  // HFI queues: from the start of the hand-over until the tail is committed
    std::uint16_t most_held;  // buffers of links: the greatest `held` so far
  };
  union {
    std::uint16_t slots = 0;  // buffers of links: flits they have room for
    struct {
      PortId output;     // the one that the queue feeds
      bool room_wanted;  // the HFI waits for a free place
    } queue;             // HFI queues
  };
  PortId port = 0;
  VcId vc = 0;

  bool is_queue() const { return IsHfi(port); }
  // Index of the requester at an output, docs/semantics.md B.5; the VC of a queue is 0, or 1 if it
  // holds multicast packets, which are for many outputs.
  int index() const { return 3 * port + vc; }

  // First packet for `output` that is not being dropped.
  Packet* Front(PortId output) const { return FrontFrom(head, output); }
  // Likewise from p on, which is here or null.
  static Packet* FrontFrom(Packet* p, PortId output) {
    while (p && (p->out != output || p->draining)) p = p->next;
    return p;
  }
  // Whether there is a Front. The newest packets are asked first: they are in the cache.
  bool HasFront(PortId output) const {
    const Packet* p = tail;
    while (p && (p->out != output || p->draining)) p = p->previous;
    return p != nullptr;
  }
  // Whether p, which is here and is not being dropped, may ask for its output (B.4). A multicast
  // packet need not be the front: it is replicated when it is whole, and one ahead of it of which
  // flits are still to come does not hold it up (B.9).
  bool Acts(const Packet* p) const { return p->out == kReplication || Front(p->out) == p; }
  void PushBack(Packet* p) {
    p->next = nullptr;
    p->previous = tail;
    (tail ? tail->next : head) = p;
    tail = p;
    newest = p;
  }
  void Remove(Packet* p) {
    (p->previous ? p->previous->next : head) = p->next;
    (p->next ? p->next->previous : tail) = p->previous;
    if (newest == p) newest = nullptr;
  }
};

static_assert(sizeof(InputBuffer) == 32, "a hub has 141");

struct HfiQueue : InputBuffer {
  Time tail_leaves = 0;  // when the tail committed last has left
  SendQueue waiting;     // packets that have yet to enter
};
static_assert(sizeof(HfiQueue) == 64, "a hub has up to 456");

inline HfiQueue& AsQueue(InputBuffer& buffer) {
  PERCS_CHECK(buffer.is_queue());
  return static_cast<HfiQueue&>(buffer);
}

}  // namespace percs
