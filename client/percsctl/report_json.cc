#include <nlohmann/json.hpp>

#include "client/percsctl/report.h"
#include "emulator/metrics/blade_counters.h"

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
  return json;
}

Json PortsJson(const NodeStats& stats) {
  Json json = Json::object();
  for (LinkClass c : {LinkClass::kLl, LinkClass::kLr, LinkClass::kD, LinkClass::kHfi}) {
    const PortStats sum = SumOfClass(stats, c);
    json[ClassName(c)] = {{"flits", sum.flits}, {"packets", sum.packets},
                          {"bytes", sum.bytes}, {"credit_stall_ps", sum.credit_stall_ps},
                          {"runs", sum.runs},   {"runs_split", sum.runs_split}};
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
  for (std::size_t i = 0; i < stats.blade.size(); ++i) json[BladeCounterNames()[i]] = stats.blade[i];
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
    sum.flits += p.flits, sum.packets += p.packets, sum.bytes += p.bytes;
    sum.credit_stall_ps += p.credit_stall_ps;
    sum.runs += p.runs, sum.runs_split += p.runs_split;
  }
  return sum;
}

std::uint64_t PacketsDropped(const NodeStats& stats) {
  std::uint64_t sum = 0;
  for (std::uint64_t n : stats.packets_dropped) sum += n;
  return sum;
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
      {"hops_mean", packets > 0 ? static_cast<double>(s.hops_delivered) / packets : 0.0},
      {"drops", DropsJson(s)},
      {"latency_ns",
       {{"packet", LatencyJson(s.packet_latency)}, {"message", LatencyJson(s.message_latency)}}},
      {"ports", PortsJson(s)},
      {"messages", MessagesJson(s)},
      {"blades", BladeJson(s)},
      {"measured",
       {{"bytes_offered", s.measured_bytes_offered},
        {"bytes_accepted", s.measured_bytes_accepted}}},
      {"alerts_raised", s.alerts_raised},
      {"tables_installed", s.tables_installed}};
}

Json ReportJson(const RunReport& report, const Topology& topology) {
  const RunResult& r = report.result;
  Json json = CountersJson(r.total);
  json.update({{"scenario", r.scenario},
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
               {"violations", r.violations}});
  return json;
}

}  // namespace percs
