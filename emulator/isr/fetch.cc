// What an event will look at is fetched into the cache before its time: in a large machine hardly
// anything is there otherwise, and one miss after the other takes longer than the work. Nothing
// here changes any state.
#include "emulator/base/prefetch.h"
#include "emulator/isr/isr.h"

namespace percs {

void Isr::FetchArrival(const Coming& coming) {
  const Packet& p = *coming.packet;
  if (IsHfi(p.in)) return FetchQueue(p.in, p.out);
  FetchLine(&outputs_[p.in]);
  FetchLine(&LinkBuffer(p.in, p.in_vc));
  if (p.segment.first == 0) router_.FetchGuess(p.header.destination, p.in);
}

void Isr::FetchDeparture(Coming* coming) const {
  const Packet& p = *coming->packet;
  if (IsHfi(p.in)) {
    coming->out = p.out;
    coming->out_vc = p.out_vc;
  } else {
    const OutputPort& back = outputs_[p.in];  // credits go back over its link
    if (back.local) {
      FetchLine(back.local);
      back.local->Fetch(back.peer_port, p.in_vc);
    }
    if (p.segment.first != 0) return;
    if (p.header.destination == context_.node) {
      coming->out = router_.WindowPort(p.header.destination_window);
    } else {
      coming->out = router_.Guess(p.header.destination, p.in);
      if (coming->out >= kLinkPorts) return;
      const Position next = NextPosition(PositionOf(p.in, p.in_vc), coming->out);
      coming->out_vc = next == kNoPosition ? VcId{0} : VcOfPosition(next);
    }
  }
  if (coming->out < kQueueOutputs) Fetch(coming->out, coming->out_vc);
}

void Isr::FetchCredits(const Coming& coming) const {
  const Packet& p = *coming.packet;
  if (!IsHfi(p.in)) {
    const OutputPort& back = outputs_[p.in];
    if (back.local) back.local->FetchReturn(back.peer_port, p.in_vc);
  }
  if (coming.out < kQueueOutputs) FetchCredits(coming.out, coming.out_vc, p.header.flits);
}

}  // namespace percs
