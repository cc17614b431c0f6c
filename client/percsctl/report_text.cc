#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "client/percsctl/fault.h"
#include "client/percsctl/format.h"
#include "client/percsctl/report.h"
#include "emulator/metrics/named_counters.h"

namespace percs {
namespace {

constexpr std::size_t kFailuresShown = 10;
constexpr std::size_t kViolationsShown = 20;
constexpr std::size_t kReroutesShown = 10;
constexpr std::size_t kRanksShown = 8;
constexpr std::size_t kEventIndent = 39;  // of EventLine()

std::string RouteModes(const NodeStats& s) {
  std::vector<std::string> parts;
  for (int i = 0; i < kPacketRouteModes; ++i) {
    const RouteMode mode = static_cast<RouteMode>(i);
    const std::uint64_t packets = s.PacketsOfMode(mode);
    if (packets == 0) continue;
    const double share = static_cast<double>(packets) / static_cast<double>(s.packets_created);
    parts.push_back(
        fmt::format("{} {} ({})", RouteModeName(mode), FormatCount(packets), FormatPercent(share)));
  }
  return parts.empty() ? "" : ReportLine("route modes", fmt::format("{}", fmt::join(parts, ", ")));
}

std::string Summary(const RunReport& report, const Topology& topology) {
  const RunResult& r = report.result;
  const NodeStats& s = r.total;
  const double seconds = static_cast<double>(r.virtual_time) / static_cast<double>(kSecond);
  const std::string nodes = FormatNodes(r.nodes, topology.blades(), topology.crossbars());
  std::string text = ReportLine("scenario", fmt::format("{} ({})", r.scenario, nodes));
  text += ReportLine("digest", r.digest.ToString());
  text += ReportLine("virtual time", FormatShort(r.virtual_time));
  text += ReportLine("wall time", fmt::format("{} ({}, {})", FormatWall(report.wall_seconds),
                                              report.placement, Counted(r.windows, "window")));
  text += ReportLine(
      "packets",
      fmt::format("{} delivered of {} created, {} in payload", FormatCount(s.packets_delivered),
                  FormatCount(s.packets_created), FormatBytes(s.bytes_delivered)));
  if (s.packets_replicated > 0) {
    text += ReportLine("multicast", fmt::format("{} copies of packets made in hubs",
                                                FormatCount(s.packets_replicated)));
  }
  if (seconds > 0) {
    text += ReportLine(
        "delivered rate",
        fmt::format("{} virtual", FormatRate(static_cast<double>(s.bytes_delivered) / seconds)));
  }
  text += ReportLine("flit-hops", fmt::format("{} ({} packet-hops; {} flits into HFI ports)",
                                              FormatCount(r.flit_hops), FormatCount(r.packet_hops),
                                              FormatCount(r.hfi_flits)));
  if (s.packets_delivered > 0) {
    text += ReportLine("hops",
                       fmt::format("{:.3f} mean", static_cast<double>(s.hops_delivered) /
                                                      static_cast<double>(s.packets_delivered)));
  }
  text += RouteModes(s);
  text += MeasuredText(r);
  return text;
}

std::string Utilisation(const RunResult& r) {
  Table table({"links", "count", "mean load", "max load", "flits", "credit stall (virtual)"});
  // Counters of all nodes are summed by port, and a crossbar has cables where a hub has LR and D
  // ports.
  const bool crossbars = r.links[static_cast<std::size_t>(LinkClass::kIb)] > 0;
  for (LinkClass c :
       {LinkClass::kLl, LinkClass::kLr, LinkClass::kD, LinkClass::kHfi, LinkClass::kIb}) {
    const int i = static_cast<int>(c);
    if (r.links[i] == 0) continue;
    const PortStats sum = SumOfClass(r.total, c);
    const bool known = !crossbars || c == LinkClass::kLl || c == LinkClass::kHfi;
    table.Add({ClassName(c), FormatCount(r.links[i]), FormatPercent(r.utilisation_mean[i]),
               FormatPercent(r.utilisation_max[i]), known ? FormatCount(sum.sum().flits) : "-",
               known ? FormatShort(static_cast<Time>(sum.credit_stall_ps)) : "-"});
  }
  return table.empty() ? "" : "\n" + table.ToString();
}

std::string DropsText(const NodeStats& s) {
  if (PacketsDropped(s) == 0) return "\nno packet was dropped\n";
  Table table({"dropped", "packets", "flits"});
  for (int i = 0; i < kDropReasons; ++i) {
    if (s.packets_dropped[i] == 0 && s.flits_dropped[i] == 0) continue;
    table.Add({DropReasonName(static_cast<DropReason>(i)), FormatCount(s.packets_dropped[i]),
               FormatCount(s.flits_dropped[i])});
  }
  return "\n" + table.ToString();
}

std::string Messages(const NodeStats& s) {
  if (s.messages_sent == 0) return "";
  std::string text = "\n";
  text +=
      ReportLine("messages",
                 fmt::format("{} sent, {} delivered, {} acknowledged, {} failed",
                             FormatCount(s.messages_sent), FormatCount(s.messages_delivered),
                             FormatCount(s.messages_acknowledged), FormatCount(s.messages_failed)));
  text += ReportLine("", fmt::format("{} resent, {} sent", Counted(s.packets_resent, "packet"),
                                     Counted(s.acks_sent, "acknowledgement")));
  if (s.payload_bytes_verified > 0 || s.payload_errors > 0) {
    text += ReportLine("payload",
                       fmt::format("{} verified, {} wrong", FormatBytes(s.payload_bytes_verified),
                                   FormatCount(s.payload_errors)));
  }
  return text;
}

std::string FailedMessages(const RunResult& r, const Topology& topology) {
  if (r.failed.empty()) return "";
  std::string text;
  std::map<std::string, std::uint64_t> reasons;
  for (const FailedMessage& f : r.failed) ++reasons[DropReasonName(f.reason)];
  for (const auto& [reason, count] : reasons) {
    text += ReportLine("failed", fmt::format("{}: {}", Counted(count, "message"), reason));
  }
  Table table({"failed message", "to", "number", "bytes", "reason", "failed at (virtual)"},
              "llrrlr");
  for (std::size_t i = 0; i < std::min(r.failed.size(), kFailuresShown); ++i) {
    const FailedMessage& f = r.failed[i];
    table.Add({topology.NodeName(f.source), topology.NodeName(f.destination),
               fmt::format("{}", f.message), FormatCount(f.bytes), DropReasonName(f.reason),
               FormatShort(f.at)});
  }
  text += table.ToString();
  if (r.failed.size() > kFailuresShown) {
    text +=
        fmt::format("... and {} more (all with --format json)\n", r.failed.size() - kFailuresShown);
  }
  return text;
}

std::string Cause(const Reroute& x, const Topology& topology) {
  std::vector<std::string> parts;
  for (const LinkEnd& link : x.down) parts.push_back(topology.LinkName(link) + " down");
  for (const LinkEnd& link : x.up) parts.push_back(topology.LinkName(link) + " up");
  for (const NodeId node : x.damaged) parts.push_back(topology.NodeName(node) + " rewritten");
  if (parts.size() > 3) {
    return fmt::format("{}, {} and {} more", parts[0], parts[1], parts.size() - 2);
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace

std::string ReportLine(const char* label, const std::string& value) {
  constexpr std::size_t kValueIndent = 17;
  return fmt::format("{:<16} {}\n", label, Hanging(value, kValueIndent));
}

std::string ReroutesText(const RunResult& r, const Topology& topology) {
  if (r.reroutes.empty()) return "";
  std::string text = "\nreroutes (virtual times)\n";
  for (std::size_t i = 0; i < std::min(r.reroutes.size(), kReroutesShown); ++i) {
    const Reroute& x = r.reroutes[i];
    const std::string what = fmt::format(
        "epoch {}: {}; tables of {} changed, {} unreachable", x.epoch, Cause(x, topology),
        Counted(x.hubs_changed, "hub"), Counted(x.unreachable_pairs, "pair"));
    const std::string times = fmt::format(
        "raised {} -> alerted {} -> planning {} -> planned {} -> committed {} -> first packet on a "
        "new path: {}",
        FormatShort(x.raised), FormatShort(x.alerted), FormatShort(x.planning_started),
        FormatShort(x.planned), FormatShort(x.committed),
        x.first_packet >= kNever ? "none" : FormatShort(x.first_packet));
    text += fmt::format("  {}\n    {}\n", Hanging(what, 4), Hanging(times, 6));
  }
  if (r.reroutes.size() > kReroutesShown) {
    text += fmt::format("  ... and {} more (all with --format json)\n",
                        r.reroutes.size() - kReroutesShown);
  }
  return text;
}

namespace {

void AddRank(Table& table, const std::string& name, Time finished, Time calc, Time overhead,
             Time waiting) {
  const double whole = finished > 0 ? static_cast<double>(finished) : 1;
  const auto part = [whole](Time t) {
    return fmt::format("{} ({})", FormatShort(t), FormatPercent(static_cast<double>(t) / whole));
  };
  table.Add({name, FormatShort(finished), part(calc), part(overhead), part(waiting)});
}

std::string Ranks(const RunResult& r) {
  if (r.ranks.empty()) return "";
  std::vector<RankResult> ranks = r.ranks;
  std::stable_sort(ranks.begin(), ranks.end(), [](const RankResult& a, const RankResult& b) {
    return a.finished > b.finished;
  });
  double finished = 0, calc = 0, overhead = 0, waiting = 0;
  for (const RankResult& x : ranks) {
    finished += static_cast<double>(x.finished), calc += static_cast<double>(x.calc);
    overhead += static_cast<double>(x.overhead), waiting += static_cast<double>(x.waiting);
  }
  const double n = static_cast<double>(ranks.size());
  const auto mean = [n](double sum) { return static_cast<Time>(sum / n); };
  Table table({"rank (virtual times)", "finished", "calc", "send/receive overhead", "waiting"});
  AddRank(table, "mean", mean(finished), mean(calc), mean(overhead), mean(waiting));
  const std::size_t shown = std::min(ranks.size(), kRanksShown);
  for (std::size_t i = 0; i < shown; ++i) {
    const RankResult& x = ranks[i];
    AddRank(table, fmt::format("{}{}", x.rank, i == 0 ? " (slowest)" : ""), x.finished, x.calc,
            x.overhead, x.waiting);
  }
  std::string text =
      "\n" + ReportLine(r.collective.empty() ? "trace" : "tasks",
                        fmt::format("{} ranks, slowest is rank {} at {}", ranks.size(),
                                    ranks[0].rank, FormatVirtual(ranks[0].finished)));
  text += table.ToString();
  if (shown < ranks.size()) {
    text += fmt::format("... and {} faster ranks (all with --format json)\n", ranks.size() - shown);
  }
  return text;
}

std::string Programs(const RunResult& r, const Topology& topology) {
  if (r.programs.empty()) return "";
  Table table({"blade", "program", "iterations", "started (virtual)", "took", "per iteration"},
              "llrrrr");
  std::string problems;
  for (const BladeProgramResult& p : r.programs) {
    const std::string name = topology.NodeName(p.node);
    const Time took = p.finished - p.started;
    const bool ended = p.problem.empty();
    if (!ended) problems += fmt::format("{}: {}: {}\n", name, p.program, p.problem);
    table.Add(
        {name, p.program, FormatCount(p.iterations), FormatShort(p.started),
         ended ? FormatShort(took) : "-",
         ended && p.iterations > 0 ? FormatShort(took / static_cast<Time>(p.iterations)) : "-"});
  }
  return "\n" + table.ToString() + problems;
}

// Of a group of counters, those that are not zero.
std::string Group(const char* title, const char* group, const NodeStats& s) {
  Table table({title, "count"});
  for (const NamedCounter* counter : CountersOf(group)) {
    if (counter->Of(s) > 0) table.Add({counter->key, FormatCount(counter->Of(s))});
  }
  return table.empty() ? "" : "\n" + table.ToString();
}

std::string Service(const NodeStats& s) {
  if (s.service_requests == 0) return "";
  const auto mean = s.service_answers > 0 ? s.service_round_trip_ps / s.service_answers : 0;
  return "\n" +
         ReportLine("service",
                    fmt::format("{} requests, {} answers after {} (at most {}), {} unanswered",
                                FormatCount(s.service_requests), FormatCount(s.service_answers),
                                FormatShort(static_cast<Time>(mean)),
                                FormatShort(static_cast<Time>(s.service_round_trip_max)),
                                FormatCount(s.service_unanswered))) +
         (s.service_wrong_partner == 0
              ? ""
              : ReportLine("", fmt::format("{} answers from a hub or port other than the wired one",
                                           FormatCount(s.service_wrong_partner))));
}

// Of windows and PCI Express ports that were used: one line for each.
std::string Hfi(const NodeStats& s) {
  Table windows({"windows of", "counter", "count"}, "llr"),
      ports({"PCIe port", "bytes in", "bytes out", "refused"});
  for (const NamedCounter* counter : CountersOf("hfis")) {
    if (counter->Of(s) == 0) continue;
    windows.Add(
        {"HFI " + counter->key.substr(0, 1), counter->key.substr(2), FormatCount(counter->Of(s))});
  }
  for (std::size_t port = 0; port < kPciePorts; ++port) {
    const std::uint64_t* counts = &s.pcie[port * kPcieCounters];
    if (counts[0] + counts[1] + counts[2] == 0) continue;
    ports.Add({std::to_string(port), FormatBytes(counts[0]), FormatBytes(counts[1]),
               FormatCount(counts[2])});
  }
  return (windows.empty() ? "" : "\n" + windows.ToString()) +
         (ports.empty() ? "" : "\n" + ports.ToString());
}

// Counters of later models that are in no group and in no other line.
std::string Others(const NodeStats& s) {
  Table table({"others", "count"});
  for (const NamedCounter& counter : NamedCounters()) {
    const bool told = counter.row->since == 1 || counter.name.find('.') != std::string::npos;
    if (!told && counter.Of(s) > 0) table.Add({counter.name, FormatCount(counter.Of(s))});
  }
  return table.empty() ? "" : "\n" + table.ToString();
}

// Participants that did not do all their steps at the first try; the others are in the counters.
std::string CauTasks(const RunResult& r, const Topology& topology) {
  Table table({"participant", "tree", "steps right", "failed", "done (virtual)", "why"}, "lrrrrl");
  for (const CauTaskResult& t : r.cau_tasks) {
    if (t.steps_failed == 0 && t.problem.empty()) continue;
    table.Add({topology.NodeName(t.node), fmt::format("{}", t.tree), FormatCount(t.steps_right),
               FormatCount(t.steps_failed), t.problem.empty() ? FormatShort(t.finished) : "-",
               t.problem.empty() ? t.reason : t.problem});
  }
  return table.empty() ? "" : "\n" + table.ToString();
}

std::string WindowProgramsText(const RunResult& r, const Topology& topology) {
  Table table({"window program", "hub", "operations", "packets", "wrong", "done (virtual)", "why"},
              "llrrrrl");
  for (const WindowProgramResult& p : r.window_programs) {
    table.Add({p.name, topology.NodeName(p.node), FormatCount(p.operations),
               FormatCount(p.received), FormatCount(p.wrong),
               p.ended ? FormatShort(p.finished) : "-", p.problem});
  }
  return table.empty() ? "" : "\n" + table.ToString();
}

std::string ClockText(const RunResult& r, const Topology& topology) {
  const ClockReport& c = r.clock;
  if (!c.on) return "";
  std::vector<std::string> sources;
  for (const NodeId source : c.sources) sources.push_back(topology.NodeName(source));
  std::string text =
      "\n" +
      ReportLine("global clock", fmt::format("{} of {} hubs synchronised, every {} from {}, over "
                                             "up to {} links",
                                             c.synchronised, c.hubs, FormatShort(c.settings.period),
                                             fmt::join(sources, ", then "), c.depth_max));
  text += ReportLine(
      "skew", fmt::format("{} at most, {} mean of {} samples; the bound is {}",
                          FormatShort(c.skew_max), FormatShort(static_cast<Time>(c.skew_mean_ps)),
                          FormatCount(c.steady), FormatShort(c.bound)));
  if (c.skew_max_ever > c.skew_max) {
    text +=
        ReportLine("held over", fmt::format("{} between any two hubs, set up to {} before",
                                            FormatShort(c.skew_max_ever), FormatShort(c.age_max)));
  }
  return text;
}

// Daemons that were lost, and that took their places.
std::string LostText(const RunResult& r) {
  std::string text;
  for (const LostHubs& x : r.lost) {
    text += fmt::format("\nlost at {}: {} with {}; the results leave them out", FormatVirtual(x.at),
                        x.who, Counted(x.nodes.size(), "hub"));
  }
  for (const RejoinedHubs& x : r.rejoined) {
    text += fmt::format("\nrejoined at {}: {}, with {} as incarnation {}", FormatVirtual(x.at),
                        x.who, Counted(x.nodes.size(), "hub"), x.incarnation);
  }
  return text.empty() ? text : text + "\n";
}

std::string Violations(const RunResult& r) {
  const std::string lost = LostText(r);
  if (r.violations.empty()) return lost + "\ncheckers: all held\n";
  std::string text =
      lost + fmt::format("\ncheckers: {}\n", Counted(r.violations.size(), "violation"));
  for (std::size_t i = 0; i < std::min(r.violations.size(), kViolationsShown); ++i) {
    text += fmt::format("  {}\n", Hanging(r.violations[i], 4));
  }
  return text;
}

std::string EventsText(const RunReport& report) {
  if (!report.show_events) return "";
  std::string text = "\n" + (report.result.events.empty() ? "no events\n" : EventHeader());
  for (const FabricEvent& e : report.result.events)
    text += EventLine(e.sequence, e.kind, e.at, e.subject, e.text);
  return text;
}

}  // namespace

std::string EventHeader() {
  return Styled(fmt::format("{:>6}  {:<16} {:>12}  {}", "number", "event", "virtual time", "what"),
                Style::kHeader, Screen::OfOutput()) +
         "\n";
}

std::string EventLine(std::uint64_t sequence, const std::string& kind, Time at,
                      const std::string& subject, const std::string& text) {
  return fmt::format("{:>6}  {:<16} {:>12}  {}\n", sequence, kind, FormatShort(at),
                     Hanging(subject + ": " + text, kEventIndent));
}

std::string ReportText(const RunReport& report, const Topology& topology) {
  const RunResult& r = report.result;
  return Summary(report, topology) + LatencyText(r.total, r.measurement) + Utilisation(r) +
         DropsText(r.total) + Messages(r.total) + FailedMessages(r, topology) +
         ReroutesText(r, topology) + Ranks(r) + CollectiveText(r.collective) +
         Programs(r, topology) + Group("blades", "blade", r.total) + ClockText(r, topology) +
         (report.trees.empty() ? "" : "\n" + TreesText(report.trees)) +
         (report.faults.empty() ? "" : "\n" + FaultsText(report.faults)) + CauTasks(r, topology) +
         Group("CAUs", "cau", r.total) + WindowProgramsText(r, topology) + Service(r.total) +
         EventsText(report) + Violations(r);
}

std::string CountersText(const NodeStats& s) {
  Table table(
      {"ports", "flits", "packets", "bytes", "credit stall (virtual)", "losses", "replays"});
  for (LinkClass c : {LinkClass::kLl, LinkClass::kLr, LinkClass::kD, LinkClass::kHfi}) {
    const PortStats port = SumOfClass(s, c);
    const VcStats sum = port.sum();
    if (sum.flits == 0 && port.credit_stall_ps == 0) continue;
    table.Add({ClassName(c), FormatCount(sum.flits), FormatCount(sum.packets),
               FormatBytes(sum.bytes), FormatShort(static_cast<Time>(port.credit_stall_ps)),
               FormatCount(sum.arbitration_losses), FormatCount(port.replays)});
  }
  std::string text = ReportLine(
      "packets",
      fmt::format("{} created, {} delivered, {} in payload", FormatCount(s.packets_created),
                  FormatCount(s.packets_delivered), FormatBytes(s.bytes_delivered)));
  if (s.alerts_raised + s.tables_installed > 0) {
    text += ReportLine("management",
                       fmt::format("{} raised, {} installed", Counted(s.alerts_raised, "alert"),
                                   Counted(s.tables_installed, "table")));
  }
  return text + LatencyText(s) + (table.empty() ? "" : "\n" + table.ToString()) + DropsText(s) +
         Messages(s) + Group("blades", "blade", s) + Group("CAUs", "cau", s) + Hfi(s) + Others(s) +
         Service(s);
}

std::string VcCountersText(const NodeStats& s) {
  Table table({"port", "VC", "flits", "packets", "bytes", "split", "losses", "stalls",
               "credit stall (virtual)", "most held", "crc", "replays", "lanes lost"});
  for (PortId port = 0; port < kPorts; ++port) {
    const PortStats& p = s.ports[port];
    bool first = true;  // of the port: it has the counters of its link
    for (int v = 0; v < VcsOf(port); ++v) {
      const VcStats& vc = p.vc[v];
      const bool link = v == 0 && p.crc_errors + p.lanes_lost > 0;
      if (vc.flits == 0 && vc.credit_stalls == 0 && vc.most_held == 0 && !link) continue;
      table.Add({PortName(port), fmt::format("{}", v), FormatCount(vc.flits),
                 FormatCount(vc.packets), FormatBytes(vc.bytes), FormatCount(vc.runs_split),
                 FormatCount(vc.arbitration_losses), FormatCount(vc.credit_stalls),
                 FormatShort(static_cast<Time>(vc.credit_stall_ps)), FormatCount(vc.most_held),
                 first ? FormatCount(p.crc_errors) : "", first ? FormatCount(p.replays) : "",
                 first ? FormatCount(p.lanes_lost) : ""});
      first = false;
    }
    if (p.service_flits > 0) {
      const std::string flits = FormatCount(p.service_flits);
      table.Add({PortName(port), "S", flits, flits, "", "", "", "", "", "", "", "", ""});
    }
  }
  return table.empty() ? "" : "\n" + table.ToString();
}

Outcome PrintReport(const RunReport& report, const Topology& topology, bool json) {
  const RunResult& r = report.result;
  fmt::print("{}",
             json ? ReportJson(report, topology).dump(2) + "\n" : ReportText(report, topology));
  if (!r.violations.empty()) {
    return Outcome::Fail(
        ExitCode::kViolation,
        fmt::format("{}, the first: {}", Counted(r.violations.size(), "checker violation"),
                    r.violations[0]));
  }
  if (r.total.payload_errors > 0) {
    return Outcome::Fail(
        ExitCode::kViolation,
        fmt::format("{} arrived wrong", Counted(r.total.payload_errors, "payload")));
  }
  return Outcome::Ok();
}

}  // namespace percs
