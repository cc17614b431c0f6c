#include "proto/convert/run_result.h"

#include "fmt/format.h"
#include "proto/convert/clock.h"
#include "proto/convert/counters.h"
#include "proto/convert/result_parts.h"
#include "proto/scenario/commands.h"
#include "proto/scenario/faults.h"
#include "proto/scenario/trees.h"

namespace percs {
namespace {

absl::Status Unknown(const char* what, const std::string& value) {
  return absl::InvalidArgumentError(
      fmt::format("the result has {} \"{}\", which this version does not know", what, value));
}

void LinkClassesToProto(const RunResult& result, v1::RunResult* message) {
  for (int c = 0; c < kLinkClasses; ++c) {
    if (result.links[c] == 0) continue;
    v1::LinkClassUse* use = message->add_link_classes();
    use->set_link_class(ClassName(static_cast<LinkClass>(c)));
    use->set_links(result.links[c]);
    use->set_utilisation_mean(result.utilisation_mean[c]);
    use->set_utilisation_max(result.utilisation_max[c]);
  }
}

absl::Status LinkClassesFromProto(const v1::RunResult& message, RunResult* result) {
  for (const v1::LinkClassUse& use : message.link_classes()) {
    int c = 0;
    while (c < kLinkClasses && use.link_class() != ClassName(static_cast<LinkClass>(c))) ++c;
    if (c == kLinkClasses) return Unknown("link class", use.link_class());
    result->links[c] = use.links();
    result->utilisation_mean[c] = use.utilisation_mean();
    result->utilisation_max[c] = use.utilisation_max();
  }
  return absl::OkStatus();
}

absl::Status ReadLinks(const google::protobuf::RepeatedPtrField<std::string>& names,
                       const Topology& topology, std::vector<LinkEnd>& links) {
  for (const std::string& name : names) {
    const auto link = topology.ParseLink(name);
    if (!link.ok()) return Unknown("link", name);
    links.push_back(*link);
  }
  return absl::OkStatus();
}

absl::StatusOr<Reroute> ReadReroute(const v1::Reroute& message, const Topology& topology) {
  Reroute r;
  r.epoch = message.epoch();
  if (auto s = ReadLinks(message.down(), topology, r.down); !s.ok()) return s;
  if (auto s = ReadLinks(message.up(), topology, r.up); !s.ok()) return s;
  r.raised = message.raised();
  r.alerted = message.alerted();
  r.planning_started = message.planning_started();
  r.planned = message.planned();
  r.committed = message.committed();
  if (message.has_first_packet()) r.first_packet = message.first_packet();
  r.hubs_changed = message.hubs_changed();
  r.unreachable_pairs = message.unreachable_pairs();
  for (const std::string& name : message.damaged()) {
    const auto node = topology.ParseNode(name);
    if (!node.ok()) return Unknown("hub", name);
    r.damaged.push_back(*node);
  }
  return r;
}

absl::StatusOr<Digest> ReadDigest(const std::string& text) {
  if (text.size() != 32 || text.find_first_not_of("0123456789abcdef") != std::string::npos) {
    return Unknown("digest", text);
  }
  return Digest{std::stoull(text.substr(0, 16), nullptr, 16),
                std::stoull(text.substr(16), nullptr, 16)};
}

void PathsToProto(const PathLatencies& paths, v1::Measurement* m) {
  for (std::uint32_t path = 0; path < PathLatencies::kClasses; ++path) {
    for (std::uint32_t hops = 0; hops < PathLatencies::kHops; ++hops) {
      const PathLatencies::Cell& cell = paths.cells[path][hops];
      if (cell.count == 0) continue;
      v1::PathLatency* to = m->add_paths();
      to->set_path_class(path);
      to->set_hops(hops);
      to->set_packets(cell.count);
      to->set_sum_ps(cell.sum_ps);
      to->set_max_ps(cell.max_ps);
    }
  }
}

// A class or a number of hops that this version does not know is ignored.
PathLatencies PathsFromProto(const v1::Measurement& m) {
  PathLatencies paths;
  for (const v1::PathLatency& from : m.paths()) {
    if (from.path_class() >= PathLatencies::kClasses || from.hops() >= PathLatencies::kHops)
      continue;
    paths.cells[from.path_class()][from.hops()] = {from.packets(), from.sum_ps(), from.max_ps()};
  }
  return paths;
}

}  // namespace

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

void RunResultToProto(const RunResult& result, const Topology& topology, v1::RunResult* message) {
  message->set_scenario(result.scenario);
  message->set_digest(result.digest.ToString());
  message->set_virtual_time(result.virtual_time);
  message->set_nodes(result.nodes);
  CountersToProto(result.total, message->mutable_total());
  message->set_flit_hops(result.flit_hops);
  message->set_packet_hops(result.packet_hops);
  message->set_hfi_flits(result.hfi_flits);
  message->set_windows(result.windows);
  LinkClassesToProto(result, message);
  PartsToProto(result, message);
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
  if (const Measurement& from = result.measurement; from.duration > 0) {
    v1::Measurement* m = message->mutable_measurement();
    m->set_duration(from.duration);
    m->set_senders(from.senders);
    m->set_saturated(from.saturated);
    if (from.latency.half_width_ps >= 0) m->set_half_width_ps(from.latency.half_width_ps);
    m->set_steady(from.latency.steady);
    m->set_receivers(from.receivers);
    m->set_least_accepted_bytes(from.least_accepted_bytes);
    m->set_fairness(from.fairness);
    m->set_created(from.created);
    m->set_undelivered(from.undelivered);
    m->set_warm_up(from.warm_up);
    m->set_unstable(from.unstable);
    m->set_least_injected_bytes(from.least_injected_bytes);
    m->set_source_fairness(from.source_fairness);
    PathsToProto(from.paths, m);
  }
  if (result.clock.on) ClockToProto(result.clock, message->mutable_clock());
}

Measurement MeasurementFromProto(const v1::Measurement& m) {
  Measurement measurement;
  measurement.duration = m.duration();
  measurement.senders = m.senders();
  measurement.saturated = m.saturated();
  if (m.has_half_width_ps()) measurement.latency.half_width_ps = m.half_width_ps();
  measurement.latency.steady = m.steady();
  measurement.receivers = m.receivers();
  measurement.least_accepted_bytes = m.least_accepted_bytes();
  measurement.fairness = m.fairness();
  measurement.created = m.created();
  measurement.undelivered = m.undelivered();
  measurement.warm_up = m.warm_up();
  measurement.unstable = m.unstable();
  measurement.least_injected_bytes = m.least_injected_bytes();
  measurement.source_fairness = m.source_fairness();
  measurement.paths = PathsFromProto(m);
  return measurement;
}

absl::StatusOr<RunResult> RunResultFromProto(const v1::RunResult& m, const Topology& topology) {
  RunResult r;
  auto digest = ReadDigest(m.digest());
  if (!digest.ok()) return digest.status();
  auto total = CountersFromProto(m.total());
  if (!total.ok()) return total.status();
  r.scenario = m.scenario();
  r.digest = *digest;
  auto workload = ReadDigest(m.workload_digest());
  if (!workload.ok()) return workload.status();
  r.workload = *workload;
  r.workload_started = m.workload_started();
  r.virtual_time = m.virtual_time();
  r.nodes = m.nodes();
  r.total = *total;
  r.flit_hops = m.flit_hops();
  r.packet_hops = m.packet_hops();
  r.hfi_flits = m.hfi_flits();
  r.windows = m.windows();
  if (auto s = LinkClassesFromProto(m, &r); !s.ok()) return s;
  if (auto s = PartsFromProto(m, &r); !s.ok()) return s;
  for (const v1::Reroute& x : m.reroutes()) {
    auto reroute = ReadReroute(x, topology);
    if (!reroute.ok()) return reroute.status();
    r.reroutes.push_back(*std::move(reroute));
  }
  if (m.has_clock()) r.clock = ClockFromProto(m.clock());
  if (m.has_measurement()) r.measurement = MeasurementFromProto(m.measurement());
  r.violations.assign(m.violations().begin(), m.violations().end());
  for (const v1::LostHubs& x : m.lost())
    r.lost.push_back({{x.nodes().begin(), x.nodes().end()}, x.who(), 0, x.at()});
  for (const v1::RejoinedHubs& x : m.rejoined()) r.rejoined.push_back(RejoinedFromProto(x));
  return r;
}

}  // namespace percs
