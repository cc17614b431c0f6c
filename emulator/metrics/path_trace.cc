#include "emulator/metrics/path_trace.h"

#include <algorithm>

#include "emulator/packet/packet_bytes.h"
#include "emulator/packet/packet_state.h"

namespace percs {

const char* WaitName(Wait wait) {
  constexpr const char* kNames[kWaits] = {"queue", "serialisation", "arbitration",
                                          "vc",    "credit",        "replay"};
  return kNames[static_cast<int>(wait)];
}

PathTracer::Choice PathTracer::Select(const PacketHeader& header) {
  Choice choice;
  for (Selected& s : selections_) {
    const TraceSelection& want = s.selection;
    if (want.source != kNoNode && want.source != node_) continue;
    if (want.destination != kNoNode && want.destination != header.destination) continue;
    if (want.message && (header.kind != PacketKind::kData || header.message != *want.message))
      continue;
    if ((want.kinds & KindBit(header.kind)) == 0) continue;
    if (header.created < want.since || header.created >= want.until) continue;
    ++s.seen;
    if (s.taken == want.count || s.seen < want.first || (s.seen - want.first) % want.every != 0)
      continue;
    ++s.taken;
    choice.taken = true;
    choice.content |= want.content;
  }
  return choice;
}

std::vector<const Packet*> PathTracer::Requesting(PortId out) const {
  std::vector<const Packet*> packets;
  for (const Waiting& w : waiting_) {
    if (w.packet->requesting && w.packet->out == out) packets.push_back(w.packet);
  }
  return packets;
}

TraceEvent& PathTracer::Record(const Packet& p, Time now, TraceStep step) {
  TraceEvent& event =
      events_.size() < kEventsMax ? events_.emplace_back() : (beyond_ = TraceEvent());
  event.time = now;
  event.source = p.header.source;
  event.sequence = p.header.sequence;
  event.node = node_;
  event.step = step;
  event.in = p.in;
  event.out = p.out;
  event.in_vc = IsHfi(p.in) ? 0 : p.in_vc;  // a packet from an HFI has none
  event.out_vc = p.out_vc;
  event.flits = p.header.flits;
  return event;
}

PathTracer::Waiting* PathTracer::Find(const Packet& p) {
  const auto it = std::find_if(waiting_.begin(), waiting_.end(),
                               [&p](const Waiting& w) { return w.packet == &p; });
  return it == waiting_.end() ? nullptr : &*it;
}

void PathTracer::Forget(const Packet& p) {
  std::erase_if(waiting_, [&p](const Waiting& w) { return w.packet == &p; });
}

void PathTracer::Begin(Packet* p, Time now) {
  const Choice choice = Select(p->header);
  if (!choice.taken) return;
  p->header.traced = true;
  TraceEvent& event = Record(*p, now, TraceStep::kCreated);
  event.destination = p->header.destination;
  event.bytes = p->header.bytes;
  event.mode = p->header.mode;
  if (!choice.content || &event == &beyond_ || content_bytes_ >= kContentMax) return;
  event.content = PacketAsBytes(p->header);
  content_bytes_ += event.content.size();
}

void PathTracer::Entered(const Packet& p, Time now) {
  Record(p, now, TraceStep::kEntered);
  waiting_.push_back({&p, Wait::kQueue, now, {}});
}

void PathTracer::Arrived(const Packet& p, Time now, Wait wait) {
  Record(p, now, TraceStep::kArrived);
  waiting_.push_back({&p, wait, now, {}});
}

void PathTracer::Branched(const Packet& branch, Time now) {
  Record(branch, now, TraceStep::kBranched);
  waiting_.push_back({&branch, Wait::kQueue, now, {}});
}

void PathTracer::Waits(const Packet& p, Time now, Wait wait) {
  Waiting* w = Find(p);
  if (!w || now < w->since) return;
  w->waited[static_cast<std::size_t>(w->wait)] += now - w->since;
  w->wait = wait;
  w->since = now;
}

void PathTracer::Granted(const Packet& p, Time now, PortId out, int first, int flits, Time until,
                         bool tail) {
  TraceEvent& event = Record(p, now, TraceStep::kGranted);
  event.out = out;
  event.first = static_cast<std::uint8_t>(first);
  event.flits = static_cast<std::uint8_t>(flits);
  event.until = until;
  if (Waiting* w = Find(p)) {
    w->waited[static_cast<std::size_t>(w->wait)] += now - w->since;
    event.waited = w->waited;
    *w = {&p, Wait::kSerialisation, until, {}};
  }
  if (tail) Forget(p);
}

void PathTracer::Delivered(const Packet& p, Time now) { Record(p, now, TraceStep::kDelivered); }

void PathTracer::Dropped(const Packet& p, Time now, DropReason reason, int flits) {
  TraceEvent& event = Record(p, now, TraceStep::kDropped);
  event.reason = reason;
  event.flits = static_cast<std::uint8_t>(flits);
  Forget(p);
}

}  // namespace percs
