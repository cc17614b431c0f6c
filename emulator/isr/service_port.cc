// Management packets in the switch (docs/semantics.md B.10). Nothing here runs where there are
// none.
#include "emulator/isr/service_port.h"

#include <algorithm>

#include "emulator/base/check.h"
#include "emulator/base/random.h"
#include "emulator/isr/isr.h"

namespace percs {

void Isr::EnableService() {
  if (service_) return;
  service_ = std::make_unique<ServiceLanes>();
  for (ServiceLanes::Lane& lane : service_->lanes)
    lane.credits = context_.parameters->service_buffer_flits;
}

// From the software of this hub; `out` is kNoPort for packets that the tables route.
void Isr::EnterService(Packet* p, PortId out) {
  p->in = kServicePort;
  p->out = out;
  ++context_.stats.packets_created;
  ++context_.stats.flits_created;
  ++context_.work->unfinished;
  if (context_.tracer) [[unlikely]] {
    p->in_vc = p->out_vc = kServiceVc;
    context_.tracer->Begin(p, context_.now);
  }
  int& held = service_->held[kServicePort];
  if (held >= context_.parameters->service_buffer_flits) {
    DropService(p, DropReason::kNoServiceSlot);
    return;
  }
  ++held;
  service_->entry_free =
      std::max(service_->entry_free, context_.now) + outputs_[kServicePort].flit_time;
  context_.queue.Push(service_->entry_free,
                      EventKey(EventClass::kFlit, kServicePort, kServiceVc,
                               static_cast<std::uint64_t>(FlitEvent::kService)),
                      EventData(p));
}

void Isr::DropService(Packet* p, DropReason reason) {
  context_.CountServiceDrop(reason);
  if (p->header.traced) [[unlikely]]
    context_.Tracer().Dropped(*p, context_.now, reason, 1);
  context_.Release(p);
}

// kNoPort: the packet is to be dropped, for `reason`.
PortId Isr::RouteService(const Packet& p, bool entered, DropReason* reason) {
  const bool directed = p.header.tag & kServiceDirected;
  if (p.header.destination == context_.node || (directed && !entered)) return kServicePort;
  if (p.header.hops == context_.topology->route_hops_max()) {
    *reason = DropReason::kNoVcPosition;
    return kNoPort;
  }
  const PortId out = directed ? p.out : router_.Route(p.header, p.in);
  if (out < kLinkPorts) {
    *reason = DropReason::kLinkDown;
    return outputs_[out].up ? out : kNoPort;
  }
  *reason = out == kDamagedEntry ? DropReason::kTableParity : DropReason::kNoRoute;
  return kNoPort;
}

void Isr::OnServiceRun(Packet* p) {
  EnableService();
  p->segment.start = context_.now;  // it waits since then
  const bool entered = p->in == kServicePort;
  if (!entered) {
    if (p->run_generation != outputs_[p->in].generation)
      return DropService(p, DropReason::kLinkDown);
    int& held = service_->held[p->in];
    if (held >= context_.parameters->service_buffer_flits) {
      ++context_.flits_without_credit;
      context_.Release(p);
      return;
    }
    ++held;
  }
  DropReason reason = DropReason::kLinkDown;
  const PortId out = RouteService(*p, entered, &reason);
  if (out == kNoPort) {
    FreeServiceSlot(p->in);
    return DropService(p, reason);
  }
  p->out = out;
  service_->lanes[out].waiting.push_back(p);
  if (p->header.traced) [[unlikely]] {
    TraceService(p, entered);
    if (service_->lanes[out].waiting.front() == p) TraceServiceWait(out, Wait::kArbitration);
  }
  service_waiting_ |= PortBit(out);
  dirty_ |= PortBit(out);
  context_.queue.Push(
      context_.now + context_.parameters->service_wait,
      EventKey(EventClass::kTimer, out, 0, static_cast<std::uint64_t>(TimerEvent::kServiceWait)),
      0);
}

Packet* Isr::TakeService(PortId out) {
  std::deque<Packet*>& waiting = service_->lanes[out].waiting;
  Packet* p = waiting.front();
  waiting.pop_front();
  if (waiting.empty()) service_waiting_ &= ~PortBit(out);
  FreeServiceSlot(p->in);
  if (context_.tracer) [[unlikely]]
    TraceServiceWait(out, Wait::kArbitration);
  return p;
}

void Isr::OnServiceWait(PortId out) {
  const std::deque<Packet*>& waiting = service_->lanes[out].waiting;
  while (!waiting.empty() &&
         waiting.front()->segment.start + context_.parameters->service_wait <= context_.now) {
    DropService(TakeService(out), DropReason::kServiceTimeout);
  }
}

bool Isr::DataCanBeGranted(OutputPort& out) {
  for (unsigned rest = out.requested_vcs; rest; rest &= rest - 1) {
    const auto v = static_cast<std::size_t>(std::countr_zero(rest));
    OutputVc& vc = out.vc[v];
    if (vc.owner && !out.requesters[v].Has(vc.owner_index)) continue;
    if (vc.credits.Any(context_.now)) return true;
  }
  return false;
}

// REQUIRES: a packet waits for the output, which is free. False: data may have it.
bool Isr::GrantService(PortId port, OutputPort& out) {
  ServiceLanes::Lane& lane = service_->lanes[port];
  const bool to_software = port == kServicePort;
  if (!to_software && lane.credits == 0) {
    if (context_.tracer) [[unlikely]]
      TraceServiceWait(port, Wait::kCredit);
    return false;
  }
  if (out.committed_port == kServicePort && DataCanBeGranted(out)) return false;
  if (watched_ & PortBit(port)) [[unlikely]]
    ExplainWaits(port, true);
  SetStall(port, out, 0);
  Packet* p = TakeService(port);
  Time start = context_.now;
  if (out.errors) start = Transmit(port, out, p, 1);
  out.busy_until = start + out.flit_time;
  out.committed_port = kServicePort;
  out.committed_flits = 0;
  out.committed_spare = false;
  ++context_.stats.ports[port].service_flits;
  if (p->header.traced) [[unlikely]]
    TraceGrant(port, out, *p, start, 0, 1, true);
  const std::uint64_t hop = ((static_cast<std::uint64_t>(context_.node) << 8) | port) + 1;
  p->header.path = Mix64(p->header.path ^ hop);
  const Time arrival = out.busy_until + context_.parameters->isr_latency + out.wire;
  if (to_software) {
    context_.queue.Push(arrival, EventKey(EventClass::kHfi, kServiceArrival, 0, 0), EventData(p));
  } else {
    --lane.credits;
    ++p->header.hops;
    SendService(out, p, arrival);
  }
  if (out.requests > 0 || !lane.waiting.empty()) ScheduleFree(port, out);
  return true;
}

void Isr::SendService(const OutputPort& out, Packet* p, Time arrival) {
  if (!out.local) {
    out.outbox->flits.push_back({arrival, out.flit_time, out.peer, out.peer_port, kServiceVc, 1, 0,
                                 true, p->tail_marks, out.generation, p->header});
    context_.Release(p);
    return;
  }
  p->in = out.peer_port;
  p->out = kNoPort;
  p->run_generation = out.generation;
  out.queue->Push(arrival,
                  EventKey(EventClass::kFlit, out.peer_port, kServiceVc,
                           static_cast<std::uint64_t>(FlitEvent::kService)),
                  EventData(p));
}

void Isr::FreeServiceSlot(PortId in) {
  --service_->held[in];
  if (in != kServicePort) ReturnServiceCredits(in, 1);
}

void Isr::ReturnServiceCredits(PortId in, int count) {
  const OutputPort& back = outputs_[in];
  if (!back.up || count == 0) return;
  const CreditRun run{context_.now + back.wire + context_.parameters->credit_processing,
                      0,
                      back.peer,
                      back.peer_port,
                      kServiceVc,
                      static_cast<std::uint16_t>(count),
                      back.generation};
  if (back.local) {
    back.local->AnnounceServiceCredits(run);
  } else {
    back.outbox->credits.push_back(run);
  }
}

void Isr::AnnounceServiceCredits(const CreditRun& run) {
  EnableService();
  service_->lanes[run.port].announced.emplace_back(run.generation, run.count);
  context_.queue.Push(
      run.arrival, EventKey(EventClass::kCredit, run.port, kServiceVc, run.generation), run.count);
}

void Isr::OnServiceCredits(PortId port, std::uint32_t generation, int count) {
  ServiceLanes::Lane& lane = service_->lanes[port];
  const auto run =
      std::find(lane.announced.begin(), lane.announced.end(), std::pair(generation, count));
  PERCS_CHECK(run != lane.announced.end());
  lane.announced.erase(run);
  const OutputPort& out = outputs_[port];
  if (!out.up || generation != out.generation) return;
  if (context_.tracer && lane.credits == 0) [[unlikely]]
    TraceServiceWait(port, Wait::kArbitration);
  lane.credits += count;
  dirty_ |= PortBit(port);
}

void Isr::ServiceDown(PortId port) {
  service_->lanes[port].credits = 0;
  while (!service_->lanes[port].waiting.empty())
    DropService(TakeService(port), DropReason::kLinkDown);
}

void Isr::ServiceUp(PortId port) {
  ReturnServiceCredits(port, context_.parameters->service_buffer_flits - service_->held[port]);
}

std::uint64_t Isr::MissingServiceCredits(PortId port) const {
  if (!service_) return 0;
  const ServiceLanes::Lane& lane = service_->lanes[port];
  int missing = context_.parameters->service_buffer_flits - lane.credits;
  for (const auto& [generation, count] : lane.announced) {
    if (generation == outputs_[port].generation) missing -= count;
  }
  return static_cast<std::uint64_t>(missing < 0 ? -missing : missing);
}

}  // namespace percs
