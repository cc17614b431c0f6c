#pragma once

#include "emulator/packet/packet_state.h"

namespace percs {

// Packets that wait for their hand-over to one ISR queue (B.3).
struct SendQueue {
  Packet* head = nullptr;
  Packet* tail = nullptr;
  Packet* last_reply = nullptr;  // replies go ahead of data: behind it they would look lost
  void Push(Packet* p);
  Packet* Pop();
};

}  // namespace percs
