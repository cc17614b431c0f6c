#include "emulator/isr/send_queue.h"

#include <utility>

namespace percs {

void SendQueue::Push(Packet* p) {
  Packet* before = tail;
  if (p->header.kind == PacketKind::kAck) before = std::exchange(last_reply, p);
  Packet*& place = before ? before->next : head;
  p->next = place;
  place = p;
  if (tail == before) tail = p;
}

Packet* SendQueue::Pop() {
  Packet* p = head;
  head = p->next;
  if (!head) tail = nullptr;
  if (last_reply == p) last_reply = nullptr;
  return p;
}

}  // namespace percs
