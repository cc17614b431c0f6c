#include "emulator/sim/traced_packet.h"

#include <algorithm>
#include <tuple>

namespace percs {
namespace {

auto Order(const TraceEvent& e) {
  return std::tuple(e.source, e.sequence, e.time, e.step, e.node, e.in, e.out, e.first, e.flits,
                    e.reason);
}

class PacketBuilder {
 public:
  PacketBuilder(const P7ihParameters& parameters, TracedPacket* packet)
      : parameters_(parameters), packet_(packet) {}

  void Add(const TraceEvent& e) {
    switch (e.step) {
      case TraceStep::kCreated:
        *packet_ = {e.source, e.destination, e.sequence, e.bytes, e.flits,
                    e.mode,   e.time,        0,          {},      {},
                    {},       e.content};
        return;
      case TraceStep::kEntered:
        packet_->hfi_wait = e.time - packet_->created - packet_->flits * parameters_.hfi.flit_time;
        [[fallthrough]];
      case TraceStep::kArrived:
      case TraceStep::kBranched:
        AddHop(e);
        return;
      case TraceStep::kGranted:
        AddGrant(e);
        return;
      case TraceStep::kDelivered:
        packet_->deliveries.emplace_back(e.time, e.node);
        return;
      case TraceStep::kDropped:
        packet_->drops.push_back({e.time, e.node, e.reason, e.flits});
        return;
    }
  }

 private:
  void AddHop(const TraceEvent& e) {
    TracedHop hop;
    hop.in = {e.node, e.in};
    hop.out = {e.node, e.out};
    hop.in_vc = e.in_vc;
    hop.out_vc = e.out_vc;
    hop.injected = e.step == TraceStep::kEntered;
    hop.branch = e.step == TraceStep::kBranched;
    hop.arrived = e.time;
    packet_->hops.push_back(hop);
  }
  void AddGrant(const TraceEvent& e) {
    for (auto hop = packet_->hops.rbegin(); hop != packet_->hops.rend(); ++hop) {
      if (hop->in != LinkEnd{e.node, e.in} || hop->in_vc != e.in_vc) continue;
      if (hop->out.port != e.out) continue;
      hop->out_vc = e.out_vc;
      hop->grants.push_back({e.time, e.until, e.first, e.flits, e.waited});
      return;
    }
  }

  const P7ihParameters& parameters_;
  TracedPacket* packet_;
};

}  // namespace

std::vector<TracedPacket> MergeTrace(const P7ihParameters& parameters,
                                     std::vector<TraceEvent> events) {
  std::sort(events.begin(), events.end(),
            [](const TraceEvent& a, const TraceEvent& b) { return Order(a) < Order(b); });
  std::vector<TracedPacket> packets;
  for (std::size_t i = 0; i < events.size();) {
    const TraceEvent first = events[i];
    TracedPacket packet;
    PacketBuilder builder(parameters, &packet);
    const bool created = first.step == TraceStep::kCreated;
    for (; i < events.size() && events[i].source == first.source &&
           events[i].sequence == first.sequence;
         ++i) {
      builder.Add(events[i]);
    }
    if (created) packets.push_back(std::move(packet));
  }
  std::sort(packets.begin(), packets.end(), [](const TracedPacket& a, const TracedPacket& b) {
    return std::tuple(a.created, a.source, a.sequence) <
           std::tuple(b.created, b.source, b.sequence);
  });
  return packets;
}

}  // namespace percs
