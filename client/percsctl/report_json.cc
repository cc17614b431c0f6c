#include <algorithm>
#include <nlohmann/json.hpp>

#include "client/percsctl/fault.h"
#include "client/percsctl/report.h"
#include "emulator/metrics/named_counters.h"

namespace percs {
namespace {

using Json = nlohmann::json;

double Seconds(Time time) { return static_cast<double>(time) / static_cast<double>(kSecond); }
double Nanoseconds(double picoseconds) { return picoseconds / static_cast<double>(kNanosecond); }
Json NanosecondsOrNull(Time time) {
  return time >= kNever ? Json() : Json(Nanoseconds(static_cast<double>(time)));
}

// The least value in a bucket (Histogram::Bucket).
std::uint64_t LowerEdge(int bucket) {
  const auto b = static_cast<std::uint64_t>(bucket);
  return b < 8 ? b : (b % 8 + 8) << (b / 8 - 1);
}

// Those that are not empty: times from `from` on and below `to`.
Json BucketsJson(const Histogram& h) {
  Json buckets = Json::array();
  for (int b = 0; b < Histogram::kBuckets; ++b) {
    const std::uint64_t count = h.buckets[static_cast<std::size_t>(b)];
    if (count == 0) continue;
    buckets.push_back({{"from", Nanoseconds(static_cast<double>(LowerEdge(b)))},
                       {"to", Nanoseconds(static_cast<double>(LowerEdge(b + 1)))},
                       {"count", count}});
  }
  return buckets;
}

// Only the count if the latency has no meaning: without arrivals, or of a saturated network.
Json LatencyJson(const Histogram& h, bool saturated = false) {
  if (h.count == 0 || saturated)
    return {{"count", h.count}, {"mean", {}}, {"p50", {}},
            {"p99", {}},        {"max", {}},  {"buckets", Json::array()}};
  return {{"count", h.count},
          {"mean", Nanoseconds(h.Mean())},
          {"p50", Nanoseconds(static_cast<double>(h.Quantile(0.5)))},
          {"p99", Nanoseconds(static_cast<double>(h.Quantile(0.99)))},
          {"max", Nanoseconds(static_cast<double>(h.max))},
          {"buckets", BucketsJson(h)}};
}

Json UtilisationJson(const RunResult& r) {
  Json json = Json::object();
  for (LinkClass c : {LinkClass::kLl, LinkClass::kLr, LinkClass::kD, LinkClass::kHfi}) {
    const int i = static_cast<int>(c);
    json[ClassName(c)] = {
        {"mean", r.utilisation_mean[i]}, {"max", r.utilisation_max[i]}, {"links", r.links[i]}};
  }
  constexpr auto kIb = static_cast<std::size_t>(LinkClass::kIb);
  if (r.links[kIb] > 0) {
    json[ClassName(LinkClass::kIb)] = {{"mean", r.utilisation_mean[kIb]},
                                       {"max", r.utilisation_max[kIb]},
                                       {"links", r.links[kIb]}};
  }
  return json;
}

template <typename Rows, typename Stats>
void AddRowsJson(const Rows& rows, const Stats& stats, Json* json) {
  for (const auto& row : rows) (*json)[row.name] = stats.*row.member;
}

Json PortsJson(const NodeStats& stats) {
  Json json = Json::object();
  for (LinkClass c : {LinkClass::kLl, LinkClass::kLr, LinkClass::kD, LinkClass::kHfi}) {
    const PortStats port = SumOfClass(stats, c);
    const VcStats sum = port.sum();
    Json& of_class = json[ClassName(c)];
    AddRowsJson(kVcCounters, sum, &of_class);
    AddRowsJson(kPortCounters, port, &of_class);
    of_class["runs"] = sum.runs();
  }
  return json;
}

Json FailuresJson(const RunResult& r, const Topology& topology) {
  Json failed = Json::array();
  for (const FailedMessage& f : r.failed) {
    failed.push_back({{"source", topology.NodeName(f.source)},
                      {"destination", topology.NodeName(f.destination)},
                      {"message", f.message},
                      {"bytes", f.bytes},
                      {"reason", DropReasonName(f.reason)},
                      {"at_ns", NanosecondsOrNull(f.at)}});
  }
  return failed;
}

Json LinkNames(const std::vector<LinkEnd>& links, const Topology& topology) {
  Json names = Json::array();
  for (const LinkEnd& link : links) names.push_back(topology.LinkName(link));
  return names;
}

Json NodeNames(const std::vector<NodeId>& nodes, const Topology& topology) {
  Json names = Json::array();
  for (const NodeId node : nodes) names.push_back(topology.NodeName(node));
  return names;
}

// Daemons that were lost.
Json LostJson(const RunResult& r) {
  Json list = Json::array();
  for (const LostHubs& x : r.lost)
    list.push_back({{"who", x.who}, {"at_ps", x.at}, {"nodes", x.nodes}});
  return list;
}

// Daemons that took the places of lost ones.
Json RejoinedJson(const RunResult& r) {
  Json list = Json::array();
  for (const RejoinedHubs& x : r.rejoined) {
    list.push_back(
        {{"who", x.who}, {"at_ps", x.at}, {"nodes", x.nodes}, {"incarnation", x.incarnation}});
  }
  return list;
}

Json ReroutesJson(const RunResult& r, const Topology& topology) {
  Json json = Json::array();
  for (const Reroute& x : r.reroutes) {
    json.push_back({{"epoch", x.epoch},
                    {"down", LinkNames(x.down, topology)},
                    {"up", LinkNames(x.up, topology)},
                    {"damaged", NodeNames(x.damaged, topology)},
                    {"raised_ns", NanosecondsOrNull(x.raised)},
                    {"alerted_ns", NanosecondsOrNull(x.alerted)},
                    {"planning_started_ns", NanosecondsOrNull(x.planning_started)},
                    {"planned_ns", NanosecondsOrNull(x.planned)},
                    {"committed_ns", NanosecondsOrNull(x.committed)},
                    {"first_packet_ns", NanosecondsOrNull(x.first_packet)},
                    {"hubs_changed", x.hubs_changed},
                    {"unreachable_pairs", x.unreachable_pairs}});
  }
  return json;
}

Json RanksJson(const RunResult& r) {
  Json json = Json::array();
  for (const RankResult& x : r.ranks) {
    json.push_back({{"rank", x.rank},
                    {"finished_ns", NanosecondsOrNull(x.finished)},
                    {"calc_ns", NanosecondsOrNull(x.calc)},
                    {"overhead_ns", NanosecondsOrNull(x.overhead)},
                    {"waiting_ns", NanosecondsOrNull(x.waiting)}});
  }
  return json;
}

Json ProgramsJson(const RunResult& r, const Topology& topology) {
  Json json = Json::array();
  for (const BladeProgramResult& p : r.programs) {
    const bool ended = p.problem.empty();
    json.push_back({{"blade", topology.NodeName(p.node)},
                    {"program", p.program},
                    {"started_ns", NanosecondsOrNull(p.started)},
                    {"finished_ns", ended ? NanosecondsOrNull(p.finished) : Json()},
                    {"iterations", p.iterations},
                    {"problem", p.problem}});
  }
  return json;
}

Json CauTasksJson(const RunResult& r, const Topology& topology) {
  Json json = Json::array();
  for (const CauTaskResult& t : r.cau_tasks) {
    json.push_back({{"hub", topology.NodeName(t.node)},
                    {"tree", t.tree},
                    {"steps_right", t.steps_right},
                    {"steps_wrong", t.steps_wrong},
                    {"steps_failed", t.steps_failed},
                    {"reason", t.reason},
                    {"problem", t.problem},
                    {"finished_ns", NanosecondsOrNull(t.finished)}});
  }
  return json;
}

Json WindowProgramsJson(const RunResult& r, const Topology& topology) {
  Json json = Json::array();
  for (const WindowProgramResult& p : r.window_programs) {
    json.push_back({{"name", p.name},
                    {"hub", topology.NodeName(p.node)},
                    {"operations", p.operations},
                    {"packets_received", p.received},
                    {"wrong", p.wrong},
                    {"problem", p.problem},
                    {"ended", p.ended},
                    {"finished_ns", NanosecondsOrNull(p.finished)}});
  }
  return json;
}

// Latencies by path; of a network without a latency only how many packets there were.
Json PathsJson(const Measurement& m) {
  Json json = Json::array();
  for (std::uint8_t path = 0; path < PathLatencies::kClasses; ++path) {
    for (std::size_t hops = 0; hops < PathLatencies::kHops; ++hops) {
      const PathLatencies::Cell& cell = m.paths.cells[path][hops];
      if (cell.count == 0) continue;
      const auto known = [&m](double ps) {
        return m.has_latency() ? Json(ps / kNanosecond) : Json();
      };
      json.push_back(
          {{"class", PathLatencies::ClassText(static_cast<PathLatencies::Class>(path))},
           {"hops", hops},
           {"packets", cell.count},
           {"mean_ns", known(static_cast<double>(cell.sum_ps) / static_cast<double>(cell.count))},
           {"max_ns", known(static_cast<double>(cell.max_ps))}});
    }
  }
  return json;
}

// For a saturated network it would also depend on the length of the measurement.
Json HalfWidthJson(const Measurement& m) {
  if (!m.has_latency() || m.latency.half_width_ps < 0) return {};
  return m.latency.half_width_ps / kNanosecond;
}

// Adds to the bytes of the measurement phase what they are per second.
void AddMeasurementJson(const RunResult& r, Json* json) {
  const LoadPerHub load = LoadOf(r);
  Json& measured = (*json)["measured"];
  measured["duration_ps"] = r.measurement.duration;
  measured["sending_hubs"] = r.measurement.senders;
  measured["offered_bytes_per_second_per_hub"] = load.offered;
  measured["accepted_bytes_per_second_per_hub"] = load.accepted;
  measured["saturated"] = r.measurement.saturated;
  const bool drained = r.measurement.created > 0;
  measured["packets_created"] = drained ? Json(r.measurement.created) : Json();
  measured["packets_undelivered"] = drained ? Json(r.measurement.undelivered) : Json();
  measured["steady"] = r.measurement.latency.steady;
  measured["unstable"] = r.measurement.unstable;
  measured["warm_up_ps"] =
      r.measurement.warm_up > 0 || r.measurement.unstable ? Json(r.measurement.warm_up) : Json();
  measured["latency_half_width_ns"] = HalfWidthJson(r.measurement);
  measured["receiving_hubs"] = r.measurement.receivers;
  measured["least_accepted_bytes_per_second_per_hub"] = load.least_accepted;
  measured["fairness"] = r.measurement.receivers > 0 ? Json(r.measurement.fairness) : Json();
  const bool injected = r.measurement.source_fairness > 0;
  measured["least_injected_bytes_per_second_per_hub"] =
      injected ? Json(load.least_injected) : Json();
  measured["source_fairness"] = injected ? Json(r.measurement.source_fairness) : Json();
  measured["latency_by_path"] = PathsJson(r.measurement);
  const bool unknown = !r.measurement.has_latency();
  (*json)["latency_ns"] = {{"packet", LatencyJson(r.total.packet_latency, unknown)},
                           {"message", LatencyJson(r.total.message_latency, unknown)}};
}

Json RouteModesJson(const NodeStats& stats) {
  Json json = Json::object();
  for (int i = 0; i < kPacketRouteModes; ++i) {
    const RouteMode mode = static_cast<RouteMode>(i);
    json[RouteModeName(mode)] = stats.PacketsOfMode(mode);
  }
  return json;
}

}  // namespace

LoadPerHub LoadOf(const RunResult& r) {
  const double seconds =
      Seconds(r.measurement.duration) * static_cast<double>(r.measurement.senders);
  if (seconds == 0) return {};
  return {
      static_cast<double>(r.total.measured_bytes_offered) / seconds,
      static_cast<double>(r.total.measured_bytes_accepted) / seconds,
      static_cast<double>(r.measurement.least_accepted_bytes) / Seconds(r.measurement.duration),
      static_cast<double>(r.measurement.least_injected_bytes) / Seconds(r.measurement.duration)};
}

PortStats SumOfClass(const NodeStats& stats, LinkClass c) {
  PortStats sum;
  for (PortId port = 0; port < kServicePort; ++port) {
    if (ClassOf(port) != c) continue;
    sum.vc[0].Add(stats.ports[port].sum());
    AddRows(kPortCounters, stats.ports[port], &sum);
  }
  return sum;
}

std::uint64_t PacketsDropped(const NodeStats& stats) {
  std::uint64_t sum = 0;
  for (std::uint64_t n : stats.packets_dropped) sum += n;
  return sum;
}

Json VcCountersJson(const NodeStats& stats) {
  Json json = Json::array();
  for (PortId port = 0; port < kPorts; ++port) {
    for (int v = 0; v < VcsOf(port); ++v) {
      const VcStats& vc = stats.ports[port].vc[v];
      if (vc.flits == 0 && vc.credit_stalls == 0 && vc.most_held == 0) continue;
      Json& json_vc = json.emplace_back(Json{{"port", PortName(port)}, {"vc", v}});
      AddRowsJson(kVcCounters, vc, &json_vc);
    }
    if (const std::uint64_t flits = stats.ports[port].service_flits; flits > 0) {
      json.push_back({{"port", PortName(port)}, {"vc", "S"}, {"flits", flits}, {"packets", flits}});
    }
  }
  return json;
}

Json CountersJson(const NodeStats& s) {
  Json json = Json::object();
  for (const NamedCounter& counter : NamedCounters()) {
    std::string pointer = "/" + counter.json;
    std::replace(pointer.begin(), pointer.end(), '.', '/');
    json[Json::json_pointer(pointer)] = counter.Of(s);
  }
  const double packets = static_cast<double>(s.packets_delivered);
  const double answers = static_cast<double>(s.service_answers);
  json["route_modes"] = RouteModesJson(s);
  json["hops_mean"] = packets > 0 ? static_cast<double>(s.hops_delivered) / packets : 0.0;
  json["latency_ns"] = {{"packet", LatencyJson(s.packet_latency)},
                        {"message", LatencyJson(s.message_latency)}};
  json["ports"] = PortsJson(s);
  json["service"].update(
      {{"round_trip_mean_ns",
        answers > 0 ? Json(static_cast<double>(s.service_round_trip_ps) / answers / 1000) : Json()},
       {"round_trip_max_ns",
        answers > 0 ? Json(static_cast<double>(s.service_round_trip_max) / 1000) : Json()},
       {"flits_to_software", s.ports[kServicePort].service_flits}});
  return json;
}

Json ClockJson(const ClockReport& clock, const Topology& topology) {
  if (!clock.on) return nullptr;
  Json sources = Json::array();
  for (const NodeId source : clock.sources) sources.push_back(topology.NodeName(source));
  return {{"period_ps", clock.settings.period}, {"drift_ppb", clock.settings.drift_ppb},
          {"error_ps", clock.settings.error},   {"samples", clock.samples},
          {"steady_samples", clock.steady},     {"skew_max_ps", clock.skew_max},
          {"skew_mean_ps", clock.skew_mean_ps}, {"bound_ps", clock.bound},
          {"depth_max", clock.depth_max},       {"skew_max_ever_ps", clock.skew_max_ever},
          {"age_max_ps", clock.age_max},        {"sources", std::move(sources)},
          {"synchronised", clock.synchronised}, {"hubs", clock.hubs}};
}

Json ReportJson(const RunReport& report, const Topology& topology) {
  const RunResult& r = report.result;
  Json json = CountersJson(r.total);
  json.update(
      {{"scenario", r.scenario},
       {"digest", r.digest.ToString()},
       {"virtual_seconds", Seconds(r.virtual_time)},
       {"virtual_ps", r.virtual_time},
       {"wall_seconds", report.wall_seconds},
       {"placement", report.placement},
       {"nodes", r.nodes},
       {"windows", r.windows},
       {"flit_hops", r.flit_hops},
       {"packet_hops", r.packet_hops},
       {"hfi_flits", r.hfi_flits},
       {"link_utilisation", UtilisationJson(r)},
       {"failed_messages", FailuresJson(r, topology)},
       {"reroutes", ReroutesJson(r, topology)},
       {"ranks", RanksJson(r)},
       {"programs", ProgramsJson(r, topology)},
       {"clock", ClockJson(r.clock, topology)},
       {"trees", TreesJson(report.trees)},
       {"collective", CollectiveJson(r.collective)},
       {"faults", FaultsJson(report.faults)},
       {"cau_tasks", CauTasksJson(r, topology)},
       {"window_programs", WindowProgramsJson(r, topology)},
       {"lost", LostJson(r)},
       {"rejoined", RejoinedJson(r)},
       {"workload", {{"digest", r.workload.ToString()}, {"started_ps", r.workload_started}}},
       {"violations", r.violations}});
  if (r.measurement.duration > 0) AddMeasurementJson(r, &json);
  if (!report.show_events) return json;
  nlohmann::json events = nlohmann::json::array();
  for (const FabricEvent& e : r.events) {
    events.push_back({{"sequence", e.sequence},
                      {"at_ps", e.at},
                      {"kind", e.kind},
                      {"subject", e.subject},
                      {"text", e.text}});
  }
  json["events"] = std::move(events);
  return json;
}

}  // namespace percs
