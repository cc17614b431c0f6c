#include "proto/scenario/trace_codec.h"

#include "emulator/packet/packet_bytes.h"
#include "fmt/format.h"

namespace percs {
namespace {

// `LR12` of `sn0-d1-h3:LR12`.
std::string PortOf(const Topology& topology, LinkEnd end) {
  const std::string name = topology.LinkName(end);
  return name.substr(name.find(':') + 1);
}

void HopToProto(const TracedHop& hop, const Topology& topology, v1::TracedHop* message) {
  message->set_node(topology.NodeName(hop.in.node));
  message->set_input(PortOf(topology, hop.in));
  if (hop.out.port == kReplication) message->set_output("replication");
  if (hop.out.port < kPorts) message->set_output(PortOf(topology, hop.out));
  message->set_input_vc(hop.in_vc);
  message->set_output_vc(hop.out_vc);
  message->set_arrived(hop.arrived);
  for (const TracedGrant& grant : hop.grants) {
    v1::TracedGrant* g = message->add_grants();
    g->set_at(grant.at);
    g->set_until(grant.until);
    g->set_first(static_cast<std::uint32_t>(grant.first));
    g->set_flits(static_cast<std::uint32_t>(grant.flits));
    for (std::size_t w = 0; w < kWaits; ++w) {
      if (grant.waited[w] == 0) continue;
      (*g->mutable_waited())[WaitName(static_cast<Wait>(w))] = grant.waited[w];
    }
  }
}

absl::StatusOr<std::uint32_t> KindsFrom(
    const google::protobuf::RepeatedPtrField<std::string>& names) {
  std::uint32_t kinds = 0;
  for (const std::string& name : names) {
    std::string known;
    std::uint32_t bit = name == kAllKinds ? kEveryKind : 0;
    for (int k = 0; k <= static_cast<int>(kLastPacketKind); ++k) {
      const auto kind = static_cast<PacketKind>(k);
      if (name == PacketKindName(kind)) bit = KindBit(kind);
      known += fmt::format("{}{}", known.empty() ? "" : ", ", PacketKindName(kind));
    }
    if (bit == 0) {
      return absl::InvalidArgumentError(fmt::format(
          "no kind of packet is called {}; there are {} and {}", name, known, kAllKinds));
    }
    kinds |= bit;
  }
  return kinds;
}

}  // namespace

absl::StatusOr<TraceSelection> SelectionFromProto(const v1::TraceSelection& message,
                                                  const Topology& topology) {
  TraceSelection selection;
  for (const auto& [name, node] : {std::pair(&message.source(), &selection.source),
                                   std::pair(&message.destination(), &selection.destination)}) {
    if (name->empty()) continue;
    const auto known = node == &selection.destination ? topology.ParseDestination(*name)
                                                      : topology.ParseNode(*name);
    if (!known.ok()) return known.status();
    *node = *known;
  }
  if (message.has_message()) selection.message = message.message();
  if (message.first() > 0) selection.first = message.first();
  if (message.every() > 0) selection.every = message.every();
  if (message.count() > 0) selection.count = message.count();
  if (!message.kinds().empty()) {
    const auto kinds = KindsFrom(message.kinds());
    if (!kinds.ok()) return kinds.status();
    selection.kinds = *kinds;
  }
  selection.since = message.since();
  if (message.has_until()) selection.until = message.until();
  selection.content = message.content();
  if (selection.count > kTracedPacketsMax) {
    return absl::InvalidArgumentError(
        fmt::format("{} packets are too many to trace; at most {} of each source", selection.count,
                    kTracedPacketsMax));
  }
  return selection;
}

void EventsToProto(const std::vector<TraceEvent>& events, TraceEventList* list) {
  for (const TraceEvent& e : events) {
    v1::TraceEvent* m = list->Add();
    m->set_time(e.time);
    m->set_source(e.source);
    m->set_sequence(e.sequence);
    m->set_node(e.node);
    m->set_step(static_cast<std::uint32_t>(e.step));
    m->set_input(e.in);
    m->set_output(e.out);
    m->set_input_vc(e.in_vc);
    m->set_output_vc(e.out_vc);
    m->set_first(e.first);
    m->set_flits(e.flits);
    m->set_until(e.until);
    m->set_reason(static_cast<std::uint32_t>(e.reason));
    if (e.waited != std::array<Time, kWaits>{}) {
      for (const Time t : e.waited) m->add_waited(t);
    }
    m->set_destination(e.destination);
    m->set_bytes(e.bytes);
    m->set_mode(static_cast<std::uint32_t>(e.mode));
    m->set_content(e.content);
  }
}

absl::StatusOr<std::vector<TraceEvent>> EventsFromProto(const TraceEventList& list,
                                                        const Topology& topology) {
  std::vector<TraceEvent> events;
  for (const v1::TraceEvent& m : list) {
    if (m.node() >= topology.nodes() || m.source() >= topology.nodes() || m.input() >= kPorts ||
        (m.output() > kReplication && m.output() != kNoPort) || m.input_vc() > kServiceVc ||
        m.output_vc() > kServiceVc || m.first() > 0xff || m.flits() > 0xff || m.bytes() > 0xffff ||
        m.step() >= kTraceSteps || m.reason() >= kDropReasons ||
        m.mode() > static_cast<std::uint32_t>(RouteMode::kAdaptive) ||
        m.content().size() > kPacketHeaderBytes + kPacketBytesMax ||
        (m.waited_size() != 0 && m.waited_size() != kWaits)) {
      return absl::InvalidArgumentError(fmt::format(
          "impossible trace record in a machine of {} nodes: node {}, ports {} to {}, VCs {} to "
          "{}, packet of node {}, step {}, flits {} + {}, {} bytes, {} waits, content of {} bytes",
          topology.nodes(), m.node(), m.input(), m.output(), m.input_vc(), m.output_vc(),
          m.source(), m.step(), m.first(), m.flits(), m.bytes(), m.waited_size(),
          m.content().size()));
    }
    TraceEvent& e = events.emplace_back();
    e.time = m.time();
    e.source = m.source();
    e.sequence = m.sequence();
    e.node = m.node();
    e.step = static_cast<TraceStep>(m.step());
    e.in = static_cast<PortId>(m.input());
    e.out = static_cast<PortId>(m.output());
    e.in_vc = static_cast<VcId>(m.input_vc());
    e.out_vc = static_cast<VcId>(m.output_vc());
    e.first = static_cast<std::uint8_t>(m.first());
    e.flits = static_cast<std::uint8_t>(m.flits());
    e.until = m.until();
    e.reason = static_cast<DropReason>(m.reason());
    for (int w = 0; w < m.waited_size(); ++w) e.waited[static_cast<std::size_t>(w)] = m.waited(w);
    e.destination = m.destination();
    e.bytes = static_cast<std::uint16_t>(m.bytes());
    e.mode = static_cast<RouteMode>(m.mode());
    e.content = m.content();
  }
  return events;
}

void TracedToProto(const std::vector<TracedPacket>& packets, const Topology& topology,
                   TracedPacketList* list) {
  for (const TracedPacket& p : packets) {
    v1::TracedPacket* m = list->Add();
    m->set_source(topology.NodeName(p.source));
    m->set_destination(topology.NodeName(p.destination));
    m->set_sequence(p.sequence);
    m->set_bytes(static_cast<std::uint32_t>(p.bytes));
    m->set_flits(static_cast<std::uint32_t>(p.flits));
    m->set_mode(RouteModeName(p.mode));
    m->set_created(p.created);
    m->set_hfi_wait(p.hfi_wait);
    m->set_content(p.content);
    for (const TracedHop& hop : p.hops) HopToProto(hop, topology, m->add_hops());
    for (const auto& [at, node] : p.deliveries) {
      m->add_deliveries()->set_at(at);
      m->mutable_deliveries()->rbegin()->set_node(topology.NodeName(node));
    }
    for (const TracedDrop& drop : p.drops) {
      v1::TracedDrop* d = m->add_drops();
      d->set_node(topology.NodeName(drop.node));
      d->set_at(drop.at);
      d->set_reason(DropReasonName(drop.reason));
      d->set_flits(static_cast<std::uint32_t>(drop.flits));
    }
  }
}

}  // namespace percs
