// What the switch records of traced packets: every wait has one reason at every moment.
#include "emulator/isr/isr.h"

namespace percs {

void Isr::TraceArrival(const Packet& p, bool front) {
  context_.Tracer().Arrived(p, context_.now, front ? Wait::kSerialisation : Wait::kQueue);
}

void Isr::TraceEntry(const Packet& p) { context_.Tracer().Entered(p, context_.now); }

// A management packet begins to wait for its output, behind earlier ones.
void Isr::TraceService(Packet* p, bool entered) {
  p->in_vc = p->out_vc = kServiceVc;
  if (entered) {
    context_.Tracer().Entered(*p, context_.now);
  } else {
    context_.Tracer().Arrived(*p, context_.now, Wait::kQueue);
  }
}

// What the first of the management packets at an output waits for from now on.
void Isr::TraceServiceWait(PortId out, Wait wait) {
  const std::deque<Packet*>& waiting = service_->lanes[out].waiting;
  if (!waiting.empty() && waiting.front()->header.traced)
    context_.Tracer().Waits(*waiting.front(), context_.now, wait);
}

// It is the first for its output and may not request yet.
void Isr::TraceFront(const Packet& p) {
  context_.Tracer().Waits(p, context_.now, Wait::kSerialisation);
}

// It requests; ExplainWaits says more when its output has been arbitrated.
void Isr::TraceRequest(const Packet& p) {
  watched_ |= PortBit(p.out);
  context_.Tracer().Waits(p, context_.now, Wait::kArbitration);
}

void Isr::TraceGrant(PortId port, const OutputPort& out, const Packet& p, Time start, int sent,
                     int count, bool tail) {
  if (start > context_.now) context_.Tracer().Waits(p, context_.now, Wait::kReplay);
  context_.Tracer().Granted(p, start, port, sent, count, out.busy_until, tail);
}

void Isr::ExplainWaits(PortId port, bool granted) {
  const std::vector<const Packet*> packets = context_.Tracer().Requesting(port);
  if (packets.empty()) watched_ &= ~PortBit(port);
  const OutputPort& out = outputs_[port];
  for (const Packet* p : packets) {
    const OutputVc& vc = out.vc[p->out_vc];
    Wait wait = Wait::kCredit;
    if (granted) {
      wait = Wait::kArbitration;
    } else if (vc.owner && vc.owner != p && !out.requesters[p->out_vc].Has(vc.owner_index)) {
      wait = Wait::kVc;
    }
    context_.Tracer().Waits(*p, context_.now, wait);
  }
}

}  // namespace percs
