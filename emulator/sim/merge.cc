// Folds the results of nodes into the result of a run, and checks what every run must obey.
#include <algorithm>
#include <array>
#include <numeric>
#include <optional>

#include "emulator/base/payload.h"
#include "emulator/sim/run.h"
#include "emulator/workload/patterns.h"
#include "fmt/format.h"

namespace percs {
namespace {

void Utilisation(const Scenario& scenario, const Topology& topology,
                 const std::vector<NodeResult>& nodes, RunResult& result) {
  for (const NodeResult& node : nodes) {
    for (PortId port = 0; port < kServicePort; ++port) {
      const LinkClass link_class = topology.ClassOfLink({node.node, port});
      const int c = static_cast<int>(link_class);
      if (!IsHfi(port) && !topology.connected(node.node, port)) continue;
      if (IsHfi(port) && topology.is_crossbar(node.node)) continue;
      const std::uint64_t flits = node.stats.ports[port].sum(&VcStats::flits);
      const double busy = static_cast<double>(flits) *
                          static_cast<double>(scenario.parameters.link(link_class).flit_time);
      const double share =
          result.virtual_time > 0 ? busy / static_cast<double>(result.virtual_time) : 0;
      ++result.links[c];
      result.utilisation_mean[c] += share;
      result.utilisation_max[c] = std::max(result.utilisation_max[c], share);
      (IsHfi(port) ? result.hfi_flits : result.flit_hops) += flits;
      if (!IsHfi(port)) result.packet_hops += node.stats.ports[port].sum(&VcStats::packets);
    }
  }
  for (int c = 0; c < kLinkClasses; ++c) {
    if (result.links[c]) result.utilisation_mean[c] /= static_cast<double>(result.links[c]);
  }
}

// Samples beyond the end of the run depend on the last window, so they are left out.
void Clocks(const Scenario& scenario, const Topology& topology,
            const std::vector<NodeResult>& nodes, DigestStream& digest, RunResult& result) {
  if (!topology.spec().clock) return;
  const ClockSettings& settings = *topology.spec().clock;
  std::vector<const std::vector<ClockSample>*> samples;
  for (const NodeResult& node : nodes) {
    if (node.node >= topology.hubs()) continue;
    samples.push_back(&node.clock);
    for (std::size_t n = 0; n < node.clock.size(); ++n) {
      if (static_cast<Time>(n + 1) * settings.period > result.virtual_time) break;
      digest.Add(static_cast<std::uint64_t>(node.clock[n].offset));
    }
  }
  Time delay_max = 0;
  for (const LinkClass c : {LinkClass::kLl, LinkClass::kLr, LinkClass::kD}) {
    delay_max = std::max(delay_max, HubClock::Delay(scenario.parameters, c));
  }
  result.clock = ReportClocks(settings, delay_max, result.virtual_time, samples);
  if (result.clock.skew_max > result.clock.bound) {
    result.violations.push_back(
        fmt::format("clocks: two synchronised clocks differed by {}; the bound is {}",
                    FormatTime(result.clock.skew_max), FormatTime(result.clock.bound)));
  }
}

// Of raw packets: those offered in the phase, and how many of them did not arrive. REQUIRES: a
// pattern with a drain.
void CountUndelivered(const PatternWorkload& pattern, const LatencyBatches& batches,
                      const NodeStats& total, Measurement* m) {
  const std::uint64_t packets = (pattern.message_bytes + kPacketBytesMax - 1) / kPacketBytesMax;
  m->created = total.measured_bytes_offered / pattern.message_bytes * packets;
  const std::uint64_t arrived =
      std::accumulate(batches.count.begin(), batches.count.end(), std::uint64_t{0});
  // Lost hubs are left out, but packets that they sent may have arrived.
  m->undelivered = m->created - std::min(arrived, m->created);
  const std::uint64_t dropped =
      std::accumulate(total.packets_dropped.begin(), total.packets_dropped.end(), std::uint64_t{0});
  m->saturated |= m->undelivered > dropped;
}

// The hubs that some hub sends to. REQUIRES: a pattern that exists on this topology.
std::vector<bool> Receivers(const Scenario& scenario, const PatternWorkload& workload,
                            std::size_t hubs) {
  std::vector<bool> receivers(hubs, false);
  const auto endpoints = static_cast<NodeId>(scenario.topology.places());
  for (NodeId place = 0; place < hubs * endpoints; ++place) {
    const auto pattern =
        DestinationPattern::Create(workload, scenario.topology, scenario.seed, place);
    PERCS_CHECK(pattern.ok());
    if (pattern->silent()) continue;
    if (pattern->fixed() == kNoNode) return std::vector<bool>(hubs, true);
    receivers[pattern->fixed() / endpoints] = true;
  }
  return receivers;
}

// The least, and Jain's index of fairness.
struct Shares {
  std::uint64_t count = 0, least = 0;
  double sum = 0, squares = 0;
  void Add(std::uint64_t bytes) {
    least = count == 0 ? bytes : std::min(least, bytes);
    ++count;
    sum += static_cast<double>(bytes);
    squares += static_cast<double>(bytes) * static_cast<double>(bytes);
  }
  double Index() const {
    return squares > 0 ? sum * sum / (static_cast<double>(count) * squares) : 0;
  }
};

// The parts of a node's phase from `first` on, as one.
PhasePart Kept(const NodeResult& node, int first) {
  PhasePart kept;
  for (auto i = static_cast<std::size_t>(first); i < node.phase.size(); ++i)
    kept.Merge(node.phase[i]);
  return kept;
}

// How evenly the hubs of a pattern receive, and send.
class Fairness {
 public:
  // REQUIRES: a pattern that exists on this topology.
  Fairness(const Scenario& scenario, const PatternWorkload& workload)
      : receivers_(Receivers(
            scenario, workload,
            PlacesOf(scenario.topology) / static_cast<NodeId>(scenario.topology.places()))) {}

  void Add(NodeId node, const PhasePart& kept) {
    if (node >= receivers_.size()) return;
    if (receivers_[node]) accepted_.Add(kept.accepted);
    if (kept.offered > 0) injected_.Add(kept.injected);
  }
  void StateIn(Measurement* m) const {
    m->receivers = accepted_.count;
    m->least_accepted_bytes = accepted_.least;
    m->fairness = accepted_.Index();
    m->least_injected_bytes = injected_.least;
    m->source_fairness = injected_.Index();
  }

 private:
  std::vector<bool> receivers_;
  Shares accepted_, injected_;
};

// Of a phase that finds its own warm-up, in place of the whole phase. Returns the first part kept.
int KeepSteadyPart(const PatternWorkload& pattern, const std::vector<NodeResult>& nodes, Time end,
                   NodeStats* total, LatencyBatches* batches, Measurement* m) {
  std::array<PhasePart, SteadyPart::kParts> parts;
  for (const NodeResult& node : nodes) {
    for (std::size_t i = 0; i < std::min(parts.size(), node.phase.size()); ++i)
      parts[i].Merge(node.phase[i]);
  }
  std::array<LatencyBatches, SteadyPart::kParts> by_part;
  for (std::size_t i = 0; i < parts.size(); ++i) by_part[i] = parts[i].batches;
  const SteadyPart steady = FindSteadyPart(by_part);
  PhasePart kept;
  for (auto i = static_cast<std::size_t>(steady.first_part); i < parts.size(); ++i)
    kept.Merge(parts[i]);
  total->measured_bytes_offered = kept.offered;
  total->measured_bytes_accepted = kept.accepted;
  total->packet_latency = kept.latency;
  *batches = steady.kept;
  m->unstable = !steady.found;
  m->warm_up = pattern.warm_up +
               (steady.first_part * pattern.measure + SteadyPart::kParts - 1) / SteadyPart::kParts;
  m->duration = std::max<Time>(0, end - m->warm_up);
  return steady.first_part;
}

// Of a phase with auto_warm_up it leaves in `total` what was measured after the warm-up.
Measurement Measured(const Scenario& scenario, const std::vector<NodeResult>& nodes,
                     NodeStats* totals) {
  const NodeStats& total = *totals;
  Measurement m;
  const PatternWorkload* pattern = scenario.pattern();
  if (!pattern || pattern->measure == 0) return m;
  Time end = pattern->warm_up + pattern->measure;
  if (scenario.stop_at > 0) end = std::min(end, scenario.stop_at);
  m.duration = std::max<Time>(0, end - pattern->warm_up);
  LatencyBatches batches;
  int first_part = 0;
  if (pattern->auto_warm_up)
    first_part = KeepSteadyPart(*pattern, nodes, end, totals, &batches, &m);
  std::optional<Fairness> fairness;
  if (pattern->pattern != Pattern::kMulticast) fairness.emplace(scenario, *pattern);
  for (const NodeResult& node : nodes) {
    const PhasePart kept = Kept(node, first_part);
    if (!pattern->auto_warm_up) batches.Merge(kept.batches);
    m.paths.Merge(kept.paths);
    if (fairness) fairness->Add(node.node, kept);
  }
  if (fairness) fairness->StateIn(&m);
  m.senders = static_cast<std::uint64_t>(
      std::count_if(nodes.begin(), nodes.end(),
                    [](const NodeResult& node) { return node.stats.measured_bytes_offered > 0; }));
  const std::uint64_t dropped =
      std::accumulate(total.flits_dropped.begin(), total.flits_dropped.end(), std::uint64_t{0});
  m.saturated = pattern->pattern != Pattern::kMulticast &&
                static_cast<double>(total.measured_bytes_accepted) +
                        static_cast<double>(dropped) * kFlitBytes <
                    Measurement::kAcceptedShare * static_cast<double>(total.measured_bytes_offered);
  m.latency = BatchMeansOf(batches);
  if (pattern->drain > 0) CountUndelivered(*pattern, batches, total, &m);
  return m;
}

// Conservation (docs/semantics.md rule 17) in flits and in tails.
void CheckConservation(const Scenario& scenario, RunResult& result) {
  const NodeStats& t = result.total;
  const auto sum = [](const auto& values) {
    return std::accumulate(values.begin(), values.end(), std::uint64_t{0});
  };
  const auto balance = [&](const char* what, std::uint64_t created, std::uint64_t synthesised,
                           std::uint64_t replicated, std::uint64_t delivered,
                           std::uint64_t dropped) {
    const std::uint64_t in = created + synthesised + replicated, out = delivered + dropped;
    if (in == out || (scenario.stop_at > 0 && in > out)) return;
    result.violations.push_back(
        fmt::format("conservation of {}: {} created + {} synthesised + {} replicated, but {} "
                    "delivered + {} dropped",
                    what, created, synthesised, replicated, delivered, dropped));
  };
  balance("flits", t.flits_created, t.flits_synthesised, t.flits_replicated, t.flits_delivered,
          sum(t.flits_dropped));
  balance("packets", t.packets_created, t.packets_synthesised, t.packets_replicated,
          t.packets_delivered, sum(t.packets_dropped));
  if (t.messages_acknowledged > t.messages_delivered ||
      t.messages_delivered > t.messages_sent) {  // rule 20
    result.violations.push_back(
        fmt::format("messages: {} sent, {} reported as delivered, but {} delivered",
                    t.messages_sent, t.messages_acknowledged, t.messages_delivered));
  }
}

// Payload bytes as they were sent, flits in order, VCs in their place, credits back where they
// belong.
void CheckNodes(const Scenario& scenario, const Topology& topology,
                const std::vector<NodeResult>& nodes, RunResult& result) {
  const auto violation = [&result](std::string text) {
    result.violations.push_back(std::move(text));
  };
  if (result.total.payload_errors > 0) {
    violation(
        fmt::format("payload: {} packets arrived with wrong bytes", result.total.payload_errors));
  }
  if (result.collective.wrong > 0) {
    violation(fmt::format("collectives: {} results differ from the expected ones",
                          result.collective.wrong));
  }
  if (const std::uint64_t wrong = result.total.Cau(CauCounter::kResultsWrong); wrong > 0) {
    violation(fmt::format("CAU: {} results differ from the serial reference", wrong));
  }
  for (const WindowProgramResult& program : result.window_programs) {
    if (program.wrong > 0) {
      violation(fmt::format(
          "windows: {} results of program {} differ from the expected ones; the first: {}",
          program.wrong, program.name, program.problem));
    }
  }
  for (const NodeResult& node : nodes) {
    const auto name = [&] { return topology.NodeName(node.node); };
    if (node.flits_out_of_order > 0) {
      violation(
          fmt::format("order of flits: {} runs of flits reached {} out of order within a packet",
                      node.flits_out_of_order, name()));
    }
    if (node.flits_without_credit > 0) {
      violation(fmt::format("credits: {} runs of flits reached {} without credits",
                            node.flits_without_credit, name()));
    }
    if (node.vcs_out_of_place > 0) {
      violation(fmt::format("VC positions: {} packets reached {} on a VC of the wrong position",
                            node.vcs_out_of_place, name()));
    }
    // A run cut short still has packets that hold credits.
    if (node.credits_missing > 0 && scenario.stop_at == 0) {
      violation(
          fmt::format("conservation of credits: {} is off by {}", name(), node.credits_missing));
    }
  }
}

}  // namespace

RunResult MergeResults(const Scenario& scenario, const Topology& topology,
                       std::vector<NodeResult> nodes, std::vector<Reroute> reroutes,
                       std::uint64_t windows, const LossRecord& losses) {
  const auto by_node = [](const NodeResult& a, const NodeResult& b) { return a.node < b.node; };
  // Results are large, and usually in order.
  if (!std::is_sorted(nodes.begin(), nodes.end(), by_node))
    std::sort(nodes.begin(), nodes.end(), by_node);
  RunResult result;
  result.scenario = scenario.name;
  result.nodes = nodes.size();
  result.windows = windows;
  result.lost = losses.lost();
  result.rejoined = losses.rejoined();
  result.reroutes = std::move(reroutes);
  DigestStream digest, workload;
  for (NodeResult& node : nodes) {
    workload.Add(node.workload);
    result.workload_started = std::max(result.workload_started, node.workload_started);
    for (const FaultTally& tally : node.tallies)
      FaultTallies::Of(&result.tallies, tally.fault) += tally.losses;
    digest.Add(node.node);
    digest.Add(node.digest);
    result.total.Add(node.stats);
    result.virtual_time = std::max(result.virtual_time, node.last_event);
    result.failed.insert(result.failed.end(), node.failed.begin(), node.failed.end());
    result.ranks.insert(result.ranks.end(), node.ranks.begin(), node.ranks.end());
    result.programs.insert(result.programs.end(), node.programs.begin(), node.programs.end());
    if (!node.collective.empty()) result.collective.Merge(node.collective);
    result.cau_tasks.insert(result.cau_tasks.end(), node.cau_tasks.begin(), node.cau_tasks.end());
    for (WindowProgramResult& program : node.window_programs)
      result.window_programs.push_back(std::move(program));
    NoteFirstPackets(node.first_rerouted, &result.reroutes);
  }
  std::sort(result.tallies.begin(), result.tallies.end(),
            [](const auto& a, const auto& b) { return a.fault < b.fault; });
  std::sort(result.ranks.begin(), result.ranks.end(),
            [](const RankResult& a, const RankResult& b) { return a.rank < b.rank; });
  losses.Fold(digest);
  std::sort(result.window_programs.begin(), result.window_programs.end(),
            [](const auto& a, const auto& b) { return a.program < b.program; });
  Clocks(scenario, topology, nodes, digest, result);
  result.digest = digest.Finish();
  result.workload = workload.Finish();
  Utilisation(scenario, topology, nodes, result);
  result.measurement = Measured(scenario, nodes, &result.total);
  if (losses.lost().empty()) CheckConservation(scenario, result);
  CheckNodes(scenario, topology, nodes, result);
  return result;
}

}  // namespace percs
