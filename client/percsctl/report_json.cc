#include <nlohmann/json.hpp>

#include "client/percsctl/fault.h"
#include "client/percsctl/report.h"
#include "emulator/metrics/blade_counters.h"
#include "emulator/metrics/cau_counters.h"
#include "emulator/metrics/hfi_counters.h"

namespace percs {
namespace {

using Json = nlohmann::json;

double Seconds(Time time) { return static_cast<double>(time) / static_cast<double>(kSecond); }
double Nanoseconds(double picoseconds) { return picoseconds / static_cast<double>(kNanosecond); }
Json NanosecondsOrNull(Time time) {
  return time >= kNever ? Json() : Json(Nanoseconds(static_cast<double>(time)));
}

Json LatencyJson(const Histogram& h) {
  return {{"count", h.count},
          {"mean", Nanoseconds(h.Mean())},
          {"p50", Nanoseconds(static_cast<double>(h.Quantile(0.5)))},
          {"p99", Nanoseconds(static_cast<double>(h.Quantile(0.99)))},
          {"max", Nanoseconds(static_cast<double>(h.max))}};
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

Json PortsJson(const NodeStats& stats) {
  Json json = Json::object();
  for (LinkClass c : {LinkClass::kLl, LinkClass::kLr, LinkClass::kD, LinkClass::kHfi}) {
    const PortStats port = SumOfClass(stats, c);
    const VcStats sum = port.sum();
    json[ClassName(c)] = {{"flits", sum.flits},
                          {"packets", sum.packets},
                          {"bytes", sum.bytes},
                          {"runs", sum.runs()},
                          {"runs_split", sum.runs_split},
                          {"arbitration_losses", sum.arbitration_losses},
                          {"credit_stalls", sum.credit_stalls},
                          {"credit_stall_ps", port.credit_stall_ps},
                          {"crc_errors", port.crc_errors},
                          {"replays", port.replays},
                          {"lanes_lost", port.lanes_lost},
                          {"service_flits", port.service_flits}};
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

Json MessagesJson(const NodeStats& s) {
  return {{"sent", s.messages_sent},           {"acknowledged", s.messages_acknowledged},
          {"delivered", s.messages_delivered}, {"bytes_delivered", s.message_bytes_delivered},
          {"failed", s.messages_failed},       {"packets_resent", s.packets_resent},
          {"acks_sent", s.acks_sent},          {"payload_bytes_verified", s.payload_bytes_verified},
          {"payload_errors", s.payload_errors}};
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

Json BladeJson(const NodeStats& stats) {
  Json json = Json::object();
  for (std::size_t i = 0; i < stats.blade.size(); ++i)
    json[BladeCounterNames()[i]] = stats.blade[i];
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

Json ServiceJson(const NodeStats& s) {
  const double answers = static_cast<double>(s.service_answers);
  return {{"requests", s.service_requests},
          {"answers", s.service_answers},
          {"unanswered", s.service_unanswered},
          {"wrong_partner", s.service_wrong_partner},
          {"round_trip_mean_ns",
           answers > 0 ? static_cast<double>(s.service_round_trip_ps) / answers / 1000 : 0.0},
          {"round_trip_max_ns", static_cast<double>(s.service_round_trip_max) / 1000},
          {"flits_to_software", s.ports[kServicePort].service_flits}};
}

Json CauJson(const NodeStats& stats) {
  Json json = Json::object();
  for (std::size_t i = 0; i < stats.cau.size(); ++i) json[CauCounterNames()[i]] = stats.cau[i];
  return json;
}

// By HFI, and by PCI Express port.
Json HfiJson(const NodeStats& s) {
  Json json = Json::array();
  for (std::size_t i = 0; i < s.hfi.size(); ++i) {
    if (i % kHfiCounters == 0) json.push_back(Json::object());
    json.back()[HfiCounterName(static_cast<HfiCounter>(i % kHfiCounters))] = s.hfi[i];
  }
  return json;
}

Json PcieJson(const NodeStats& s) {
  Json json = Json::array();
  for (std::size_t i = 0; i < s.pcie.size(); ++i) {
    if (i % kPcieCounters == 0) json.push_back(Json::object());
    json.back()[PcieCounterName(static_cast<PcieCounter>(i % kPcieCounters))] = s.pcie[i];
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

Json DropsJson(const NodeStats& stats) {
  Json json = Json::object();
  for (int i = 0; i < kDropReasons; ++i) {
    json[DropReasonName(static_cast<DropReason>(i))] = stats.packets_dropped[i];
  }
  return json;
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

PortStats SumOfClass(const NodeStats& stats, LinkClass c) {
  PortStats sum;
  for (PortId port = 0; port < kServicePort; ++port) {
    if (ClassOf(port) != c) continue;
    const PortStats& p = stats.ports[port];
    sum.vc[0].Add(p.sum());
    sum.credit_stall_ps += p.credit_stall_ps;
    sum.crc_errors += p.crc_errors, sum.replays += p.replays;
    sum.lanes_lost += p.lanes_lost;
    sum.service_flits += p.service_flits;
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
      json.push_back({{"port", PortName(port)},
                      {"vc", v},
                      {"flits", vc.flits},
                      {"packets", vc.packets},
                      {"bytes", vc.bytes},
                      {"runs_split", vc.runs_split},
                      {"arbitration_losses", vc.arbitration_losses},
                      {"credit_stalls", vc.credit_stalls},
                      {"credit_stall_ps", vc.credit_stall_ps},
                      {"most_held", vc.most_held}});
    }
    if (const std::uint64_t flits = stats.ports[port].service_flits; flits > 0) {
      json.push_back({{"port", PortName(port)}, {"vc", "S"}, {"flits", flits}, {"packets", flits}});
    }
  }
  return json;
}

Json CountersJson(const NodeStats& s) {
  const double packets = static_cast<double>(s.packets_delivered);
  return {
      {"packets_created", s.packets_created},
      {"route_modes", RouteModesJson(s)},
      {"packets_delivered", s.packets_delivered},
      {"flits_delivered", s.flits_delivered},
      {"bytes_delivered", s.bytes_delivered},
      {"packets_synthesised", s.packets_synthesised},
      {"packets_replicated", s.packets_replicated},
      {"flits_replicated", s.flits_replicated},
      {"hops_mean", packets > 0 ? static_cast<double>(s.hops_delivered) / packets : 0.0},
      {"drops", DropsJson(s)},
      {"latency_ns",
       {{"packet", LatencyJson(s.packet_latency)}, {"message", LatencyJson(s.message_latency)}}},
      {"ports", PortsJson(s)},
      {"messages", MessagesJson(s)},
      {"blades", BladeJson(s)},
      {"caus", CauJson(s)},
      {"service", ServiceJson(s)},
      {"hfis", HfiJson(s)},
      {"nmmu", {{"hits", s.nmmu_hits}, {"misses", s.nmmu_misses}}},
      {"pcie", PcieJson(s)},
      {"measured",
       {{"bytes_offered", s.measured_bytes_offered},
        {"bytes_accepted", s.measured_bytes_accepted}}},
      {"alerts_raised", s.alerts_raised},
      {"tables_installed", s.tables_installed}};
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
