// One input FIFO of the crossbar: a (link port, VC), or one output's queue on an HFI port.
#pragma once

#include "emulator/isr/packet_state.h"

namespace percs {

struct InputFifo {
  Packet* head = nullptr;
  Packet* tail = nullptr;
  // The last commitment out of this FIFO: it ends at busy_until, its flits leave flit_time apart.
  Time busy_until = 0;
  Time commitment_flit_time = 0;
  std::uint16_t commitment_flits = 0;
  bool commitment_has_spare = false;  // its last flit is a poison tail in the slot set aside for it
  std::uint16_t held = 0;     // slots of flits announced and not committed
  std::uint16_t packets = 0;  // in the FIFO (HFI queues: from the start of the hand-over)
  PortId port = 0;
  VcId vc = 0;
  PortId queue_output = kNoPort;  // HFI queues: the one output they feed
  bool advance_scheduled = false;
  bool room_wanted = false;   // HFI queues: the HFI waits for a free place

  // The packet that left last while flits of it were still announced only: a link that dies now must
  // poison it where it went.
  struct Departed {
    NodeId source = kNoNode;
    std::uint64_t sequence = 0;
    Segment last;              // its last run
    PortId out = kNoPort;
    VcId out_vc = 0;
    Time tail_onward = 0;      // when its tail reaches the next hub
    std::uint32_t generation = 0;
    Packet* ejecting = nullptr;  // out is an HFI port: the packet on its way to the HFI
  } departed;

  // Index of the requester at an output, docs/semantics.md B.5.
  int index() const { return 3 * port + (queue_output == kNoPort ? vc : 0); }

  void PushBack(Packet* p) {
    p->next = nullptr;
    if (tail) {
      tail->next = p;
    } else {
      head = p;
    }
    tail = p;
  }
  Packet* PopFront() {
    Packet* p = head;
    head = p->next;
    if (!head) tail = nullptr;
    return p;
  }
  // Flits of the last commitment that leave after t.
  int FlitsLeavingAfter(Time t) const {
    if (busy_until <= t || commitment_flits == 0) return 0;
    const Time left = (busy_until - t + commitment_flit_time - 1) / commitment_flit_time;
    return static_cast<int>(left < commitment_flits ? left : commitment_flits);
  }
};

}  // namespace percs
