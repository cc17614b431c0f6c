#include "daemon/controller/results.h"

#include <algorithm>
#include <vector>

#include "emulator/metrics/blade_counters.h"
#include "emulator/metrics/cau_counters.h"
#include "emulator/metrics/hfi_counters.h"
#include "fmt/format.h"
#include "proto/scenario/blades.h"
#include "proto/scenario/clock_codec.h"
#include "proto/scenario/collective.h"
#include "proto/scenario/commands.h"
#include "proto/scenario/faults.h"
#include "proto/scenario/trees.h"
#include "proto/scenario/windows.h"

namespace percs {
namespace {

void HistogramToProto(const Histogram& histogram, v1::Histogram* message) {
  message->set_count(histogram.count);
  message->set_sum(histogram.sum);
  message->set_max(histogram.max);
  std::size_t used = histogram.buckets.size();
  while (used > 0 && histogram.buckets[used - 1] == 0) --used;
  for (std::size_t b = 0; b < used; ++b) message->add_buckets(histogram.buckets[b]);
}

template <typename Drops>
void DropsToProto(const Drops& drops, google::protobuf::Map<std::string, std::uint64_t>* map) {
  for (int i = 0; i < kDropReasons; ++i) {
    if (drops[i] > 0) (*map)[DropReasonName(static_cast<DropReason>(i))] = drops[i];
  }
}

void TrafficToProto(const NodeStats& s, v1::Counters* m) {
  m->set_packets_created(s.packets_created);
  m->set_flits_created(s.flits_created);
  m->set_packets_delivered(s.packets_delivered);
  m->set_flits_delivered(s.flits_delivered);
  m->set_bytes_delivered(s.bytes_delivered);
  m->set_packets_synthesised(s.packets_synthesised);
  m->set_packets_replicated(s.packets_replicated);
  m->set_flits_replicated(s.flits_replicated);
  m->set_flits_synthesised(s.flits_synthesised);
  m->set_hops_delivered(s.hops_delivered);
  DropsToProto(s.packets_dropped, m->mutable_packets_dropped());
  DropsToProto(s.flits_dropped, m->mutable_flits_dropped());
  for (int i = 1; i < kPacketRouteModes; ++i) {
    if (s.packets_by_mode[i] == 0) continue;
    (*m->mutable_packets_by_mode())[RouteModeName(static_cast<RouteMode>(i))] =
        s.packets_by_mode[i];
  }
}

void MessagesToProto(const NodeStats& s, v1::Counters* m) {
  m->set_messages_sent(s.messages_sent);
  m->set_messages_acknowledged(s.messages_acknowledged);
  m->set_messages_failed(s.messages_failed);
  m->set_messages_delivered(s.messages_delivered);
  m->set_message_bytes_delivered(s.message_bytes_delivered);
  m->set_packets_resent(s.packets_resent);
  m->set_acks_sent(s.acks_sent);
  m->set_payload_errors(s.payload_errors);
  m->set_payload_bytes_verified(s.payload_bytes_verified);
}

// `each` counters of every one of several; nothing if all are zero.
template <typename Enum, std::size_t kCount>
void GroupsToProto(const std::array<std::uint64_t, kCount>& counts, int each,
                   const char* (*name_of)(Enum),
                   google::protobuf::RepeatedPtrField<v1::NamedCounters>* groups) {
  if (std::all_of(counts.begin(), counts.end(), [](std::uint64_t count) { return count == 0; }))
    return;
  for (int i = 0; i < static_cast<int>(kCount); ++i) {
    v1::NamedCounters* group = i % each == 0 ? groups->Add() : &groups->at(i / each);
    if (counts[i] != 0)
      (*group->mutable_counts())[name_of(static_cast<Enum>(i % each))] = counts[i];
  }
}

void ExtrasToProto(const RunResult& result, v1::RunResult* message) {
  for (int c = 0; c < kLinkClasses; ++c) {
    if (result.links[c] == 0) continue;
    v1::LinkClassUse* use = message->add_link_classes();
    use->set_link_class(ClassName(static_cast<LinkClass>(c)));
    use->set_links(result.links[c]);
    use->set_utilisation_mean(result.utilisation_mean[c]);
    use->set_utilisation_max(result.utilisation_max[c]);
  }
  for (const FailedMessage& f : result.failed) {
    v1::FailedMessage* m = message->add_failed();
    m->set_source(f.source);
    m->set_destination(f.destination);
    m->set_message(f.message);
    m->set_bytes(f.bytes);
    m->set_reason(DropReasonName(f.reason));
    m->set_at(f.at);
  }
  for (const RankResult& r : result.ranks) {
    v1::RankResult* m = message->add_ranks();
    m->set_rank(r.rank);
    m->set_finished(r.finished);
    m->set_calc(r.calc);
    m->set_overhead(r.overhead);
    m->set_waiting(r.waiting);
  }
  for (const BladeProgramResult& p : result.programs) ProgramToProto(p, message->add_programs());
  for (const CauTaskResult& t : result.cau_tasks) CauTaskToProto(t, message->add_cau_tasks());
  for (const auto& program : result.window_programs)
    WindowProgramToProto(program, message->add_window_programs());
  if (!result.collective.empty())
    CollectiveToProto(result.collective, message->mutable_collective());
}

}  // namespace

void PortToProto(PortId port, const PortStats& stats, v1::PortCounters* message) {
  const VcStats sum = stats.sum();
  message->set_port(port);
  message->set_flits(sum.flits);
  message->set_packets(sum.packets);
  message->set_bytes(sum.bytes);
  message->set_credit_stall_ps(stats.credit_stall_ps);
  message->set_runs(sum.runs());
  message->set_runs_split(sum.runs_split);
  message->set_crc_errors(stats.crc_errors);
  message->set_replays(stats.replays);
  message->set_lanes_lost(stats.lanes_lost);
  message->set_service_flits(stats.service_flits);
  for (int v = 0; v < VcsOf(port); ++v) {
    const VcStats& vc = stats.vc[v];
    if (vc.flits == 0 && vc.credit_stalls == 0 && vc.arbitration_losses == 0 && vc.most_held == 0)
      continue;
    v1::VcCounters* m = message->add_vcs();
    m->set_vc(static_cast<std::uint32_t>(v));
    m->set_flits(vc.flits);
    m->set_packets(vc.packets);
    m->set_bytes(vc.bytes);
    m->set_runs_split(vc.runs_split);
    m->set_arbitration_losses(vc.arbitration_losses);
    m->set_credit_stalls(vc.credit_stalls);
    m->set_credit_stall_ps(vc.credit_stall_ps);
    m->set_most_held(vc.most_held);
  }
}

static void ServiceToProto(const NodeStats& stats, v1::ServiceCounters* message) {
  message->set_requests(stats.service_requests);
  message->set_answers(stats.service_answers);
  message->set_unanswered(stats.service_unanswered);
  message->set_wrong_partner(stats.service_wrong_partner);
  message->set_round_trip_ps(stats.service_round_trip_ps);
  message->set_round_trip_max(stats.service_round_trip_max);
}

void CountersToProto(const NodeStats& stats, v1::Counters* message) {
  for (PortId port = 0; port < kPorts; ++port) {
    v1::PortCounters counters;
    PortToProto(port, stats.ports[port], &counters);
    const bool used = counters.vcs_size() > 0 || counters.crc_errors() > 0 ||
                      counters.lanes_lost() > 0 || counters.service_flits() > 0;
    if (used) *message->add_ports() = std::move(counters);
  }
  TrafficToProto(stats, message);
  MessagesToProto(stats, message);
  if (stats.service_requests > 0) ServiceToProto(stats, message->mutable_service());
  message->set_measured_bytes_offered(stats.measured_bytes_offered);
  message->set_measured_bytes_accepted(stats.measured_bytes_accepted);
  message->set_alerts_raised(stats.alerts_raised);
  message->set_tables_installed(stats.tables_installed);
  for (std::size_t i = 0; i < stats.blade.size(); ++i) {
    if (stats.blade[i] != 0) (*message->mutable_blade())[BladeCounterNames()[i]] = stats.blade[i];
  }
  for (std::size_t i = 0; i < stats.cau.size(); ++i) {
    if (stats.cau[i] != 0) (*message->mutable_cau())[CauCounterNames()[i]] = stats.cau[i];
  }
  GroupsToProto(stats.hfi, kHfiCounters, HfiCounterName, message->mutable_hfis());
  GroupsToProto(stats.pcie, kPcieCounters, PcieCounterName, message->mutable_pcie());
  message->set_nmmu_hits(stats.nmmu_hits);
  message->set_nmmu_misses(stats.nmmu_misses);
  HistogramToProto(stats.packet_latency, message->mutable_packet_latency());
  HistogramToProto(stats.message_latency, message->mutable_message_latency());
}

void RerouteToProto(const Reroute& reroute, const Topology& topology, v1::Reroute* message) {
  message->set_epoch(reroute.epoch);
  for (const LinkEnd& link : reroute.down) message->add_down(topology.LinkName(link));
  for (const LinkEnd& link : reroute.up) message->add_up(topology.LinkName(link));
  message->set_raised(reroute.raised);
  message->set_alerted(reroute.alerted);
  message->set_planning_started(reroute.planning_started);
  message->set_planned(reroute.planned);
  message->set_committed(reroute.committed);
  if (reroute.first_packet != kNever) message->set_first_packet(reroute.first_packet);
  message->set_hubs_changed(reroute.hubs_changed);
  message->set_unreachable_pairs(reroute.unreachable_pairs);
  for (const NodeId node : reroute.damaged) message->add_damaged(topology.NodeName(node));
}

void ResultToProto(const RunResult& result, const Topology& topology, v1::RunResult* message) {
  message->set_scenario(result.scenario);
  message->set_digest(result.digest.ToString());
  message->set_virtual_time(result.virtual_time);
  message->set_nodes(result.nodes);
  CountersToProto(result.total, message->mutable_total());
  message->set_flit_hops(result.flit_hops);
  message->set_packet_hops(result.packet_hops);
  message->set_hfi_flits(result.hfi_flits);
  message->set_windows(result.windows);
  ExtrasToProto(result, message);
  for (const Reroute& r : result.reroutes) RerouteToProto(r, topology, message->add_reroutes());
  for (const TreeStatus& t : result.trees) TreeToProto(t, topology, false, message->add_trees());
  for (const FaultStatus& f : result.faults)
    FaultToProto(f, result, topology, message->add_faults());
  for (const std::string& v : result.violations) message->add_violations(v);
  message->set_workload_digest(result.workload.ToString());
  message->set_workload_started(result.workload_started);
  for (const LostHubs& lost : result.lost) {
    v1::LostHubs* m = message->add_lost();
    m->set_who(lost.who);
    m->set_at(lost.at);
    m->mutable_nodes()->Add(lost.nodes.begin(), lost.nodes.end());
  }
  for (const RejoinedHubs& rejoined : result.rejoined)
    RejoinedToProto(rejoined, message->add_rejoined());
  if (result.clock.on) ClockToProto(result.clock, message->mutable_clock());
}

void TopologyToProto(const TopologySpec& spec, v1::Topology* message) {
  message->set_supernodes(spec.supernodes);
  message->set_drawers(spec.drawers);
  message->set_hubs(spec.hubs);
  message->set_d_links_per_pair(spec.d_links_per_pair);
  if (!spec.infiniband) return;
  message->mutable_infiniband()->set_cus(spec.infiniband->cus);
  message->mutable_infiniband()->set_gateway(spec.infiniband->gateway);
}

void BladesToProto(const TopologySpec& spec,
                   google::protobuf::RepeatedPtrField<v1::BladeSite>* blades) {
  for (const BladeSite& site : spec.blades) {
    v1::BladeSite* blade = blades->Add();
    blade->set_name(site.name);
    blade->set_attach(site.attach);
  }
}

LinkEnd LowerEnd(const Topology& topology, LinkEnd link) {
  const LinkEnd far = topology.Peer(link.node, link.port);
  return std::pair(far.node, far.port) < std::pair(link.node, link.port) ? far : link;
}

std::string EndsOf(const Topology& topology, LinkEnd link) {
  const LinkEnd lower = LowerEnd(topology, link);
  return fmt::format("{}/{}", topology.NodeName(lower.node),
                     topology.NodeName(topology.Peer(lower.node, lower.port).node));
}

}  // namespace percs
