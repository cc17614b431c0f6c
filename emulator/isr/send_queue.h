#pragma once

#include "emulator/packet/packet_state.h"

namespace percs {

// Packets that wait for their hand-over to one ISR queue (B.3).
struct SendQueue {
  Packet* head = nullptr;
  Packet* tail = nullptr;
  Packet* last_reply = nullptr;  // replies go ahead of data: behind it they would look lost
  void Push(Packet* p) {
    if (p->header.kind == PacketKind::kAck) return PushReply(p);
    p->next = nullptr;
    (tail ? tail->next : head) = p;
    tail = p;
  }
  void PushReply(Packet* p);
  Packet* Pop() {
    Packet* p = head;
    head = p->next;
    if (!head) tail = nullptr;
    if (last_reply == p) last_reply = nullptr;
    return p;
  }
};

}  // namespace percs
