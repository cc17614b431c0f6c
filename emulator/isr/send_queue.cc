#include "emulator/isr/send_queue.h"

#include <utility>

namespace percs {

void SendQueue::PushReply(Packet* p) {
  Packet* before = std::exchange(last_reply, p);
  Packet*& place = before ? before->next : head;
  p->next = place;
  place = p;
  if (tail == before) tail = p;
}

}  // namespace percs
