#include "emulator/sim/run.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "emulator/base/check.h"
#include "emulator/routing/planner.h"
#include "emulator/sim/window_policy.h"
#include "fmt/format.h"

namespace percs {
namespace {

Standing StandingOf(const Fabric& fabric, const Prospect& prospect, bool commanded) {
  Standing standing;
  standing.has_background = fabric.scenario().has_background();
  standing.next = prospect.next;
  standing.next_foreground = standing.has_background ? fabric.NextForegroundTime() : prospect.next;
  standing.left = prospect.left;
  standing.whole = fabric.lost().empty();
  standing.commands_to_come = commanded;
  return standing;
}

// Events of network management.
void TakeManagement(Fabric& fabric, RunResult* result) {
  result->trees = fabric.trees();
  result->faults = fabric.faults()->List();
  std::uint64_t lost = 0;
  result->events = fabric.events().After(0, EventLog::kKept, &lost);
}

// Longer than any packet is in flight or any timer runs when the work is done.
constexpr Time kDrain = 20 * kMillisecond;

// The workload has ended: waits until the fabric has drained, and starts it again.
absl::Status Repeat(Fabric& fabric, const RunOptions& options) {
  const Time at = fabric.now() + kDrain;
  if (options.again == RunOptions::Again::kWithArbitersReset)
    fabric.faults()->ResetArbiters(at - 1);
  for (Time next = fabric.NextEventTime(); next < at; next = fabric.NextEventTime()) {
    fabric.RunWindow(std::min(next + fabric.lookahead(), at), options.executor);
  }
  return fabric.RepeatWorkload(at);
}

// A command finds the state that a window of any length has left. `awaited`: as RunOptions::watch
// says.
Time WindowEnd(const RunOptions& options, const Fabric& fabric, Time next, bool awaited) {
  return options.commands.empty() && !awaited ? fabric.WindowEnd(next) : next + fabric.lookahead();
}

absl::Status DeadlockOf(const Fabric& fabric) {
  return DeadlockError(fabric.topology(), fabric.work_left(), fabric.last_event(),
                       fabric.WaitEdges(), fabric.BlockedPrograms());
}

RunResult Collect(const Scenario& scenario, const RunOptions& options, Fabric& fabric,
                  std::uint64_t windows) {
  std::vector<NodeResult> nodes;
  nodes.reserve(fabric.local_nodes().size());
  for (NodeId node : fabric.local_nodes()) {
    nodes.push_back(fabric.Result(node));
    if (options.on_result) options.on_result(nodes.back());
  }
  RunResult result = MergeResults(scenario, fabric.topology(), std::move(nodes), fabric.reroutes(),
                                  windows, fabric.losses());
  TakeManagement(fabric, &result);
  return result;
}

}  // namespace

absl::StatusOr<RunResult> RunScenario(const Scenario& scenario, const RunOptions& options) {
  auto topology = Topology::Create(scenario.topology);
  if (!topology.ok()) return topology.status();
  auto created = Fabric::Create(scenario, Placement::Single(topology->nodes()), options.threads);
  if (!created.ok()) return created.status();
  Fabric& fabric = **created;
  if (options.on_delivery) fabric.ObserveDeliveries(options.on_delivery);
  if (options.tables) {
    const auto proof =
        CheckTables(*topology, Failures(), *options.tables, scenario.parameters.vc_policy);
    if (!proof.ok()) return absl::InvalidArgumentError(proof.status().message());
  }
  const TableSet tables =
      options.tables ? *options.tables : Planner(fabric.topology()).Plan(Failures());
  for (NodeId node = 0; node < topology->nodes(); ++node) fabric.InstallTables(node, tables[node]);
  if (options.trace) fabric.Trace(*options.trace);
  if (options.rank_slices) fabric.KeepRankSlices(kRankSlicesMax);
  if (options.dma_slices) fabric.KeepDmaSlices(cell::kDmaSlicesMax);
  const auto save_trace = absl::MakeCleanup([&] {
    if (options.traced) *options.traced = fabric.TraceEvents();
    if (options.rank_slices) *options.rank_slices = fabric.RankSlices();
    if (options.dma_slices) *options.dma_slices = fabric.DmaSlices();
  });
  fabric.Start();
  bool awaited = options.watch && options.watch(fabric, 0, /*ended=*/false);

  WindowPolicy policy(scenario.stop_at, scenario.parameters.stall_limit);
  std::uint64_t windows = 0;
  bool repeated = false;
  auto command = options.commands.begin();
  Prospect prospect = fabric.prospect();
  while (true) {
    const Time next = prospect.next;
    const bool commanded = command != options.commands.end();
    if (commanded && command->at <= next) {
      if (absl::Status s = command->act(fabric, command->at);
          s.code() == absl::StatusCode::kDataLoss)
        return s;
      ++command;
      prospect = fabric.prospect();
      continue;
    }
    const WindowDecision decision = policy.Decide(StandingOf(fabric, prospect, commanded),
                                                  [&] { return fabric.flits_moved(); });
    if (decision == WindowDecision::kDone && options.again != RunOptions::Again::kNo &&
        !std::exchange(repeated, true)) {
      if (const absl::Status status = Repeat(fabric, options); !status.ok()) return status;
      prospect = fabric.prospect();
      continue;
    }
    if (decision == WindowDecision::kDone || decision == WindowDecision::kStopped) break;
    if (decision == WindowDecision::kDeadlock) return DeadlockOf(fabric);
    // There are no outside programs and no held run here.
    PERCS_CHECK(decision == WindowDecision::kOpen);
    Time end = std::min(WindowEnd(options, fabric, next, awaited), policy.next_look());
    if (scenario.stop_at > 0) end = std::min(end, scenario.stop_at);
    if (commanded) end = std::min(end, command->at);
    fabric.RunWindow(end, options.executor);
    prospect = fabric.ProspectAfterWindow();
    ++windows;
    awaited = options.watch && options.watch(fabric, windows, /*ended=*/false);
    if (options.cancelled && options.cancelled())
      return absl::CancelledError("the run was cancelled");
    if (options.progress && windows % options.progress_every_windows == 0) {
      options.progress({fabric.now(), windows, fabric.packets_delivered()});
    }
  }
  if (options.watch) options.watch(fabric, windows, /*ended=*/true);
  return Collect(scenario, options, fabric, windows);
}

absl::Status DeadlockError(const Topology& topology, const WorkLeft& left, Time last_event,
                           std::vector<WaitEdge> edges, const std::vector<std::string>& blocked) {
  std::stable_sort(edges.begin(), edges.end(),
                   [](const WaitEdge& a, const WaitEdge& b) { return a.node < b.node; });
  const std::string cycle = DescribeDeadlock(topology, edges);
  std::string text = fmt::format(
      "deadlock at {} of virtual time: {} packets are in the fabric, {} tasks are unfinished{}",
      FormatTime(last_event), left.resident_packets, left.unfinished,
      cycle.empty() ? "; no packet waits for another" : "; wait-for cycle: " + cycle);
  constexpr std::size_t kListedMax = 8;
  for (std::size_t i = 0; i < std::min(blocked.size(), kListedMax); ++i) text += "; " + blocked[i];
  if (blocked.size() > kListedMax) {
    text += fmt::format("; and {} more programs", blocked.size() - kListedMax);
  }
  return absl::FailedPreconditionError(text);
}

std::string DescribeDeadlock(const Topology& topology, const std::vector<WaitEdge>& edges) {
  // An input (node, port, VC) waits for the inputs behind its outputs, (peer, peer port, output
  // VC): for several, when packets for several outputs are in it.
  using Place = std::tuple<NodeId, PortId, VcId>;
  struct Visit {
    std::vector<const WaitEdge*> edges;
    std::size_t next = 0;  // edge to follow next
    bool on_path = false;
  };
  std::map<Place, Visit> places;
  for (const WaitEdge& edge : edges) {
    if (edge.input >= kLinkPorts || edge.output >= kLinkPorts) continue;
    places[{edge.node, edge.input, edge.input_vc}].edges.push_back(&edge);
  }
  std::vector<std::map<Place, Visit>::iterator> path;
  for (auto start = places.begin(); start != places.end(); ++start) {
    if (start->second.next == 0) path.push_back(start), start->second.on_path = true;
    while (!path.empty()) {
      Visit& visit = path.back()->second;
      if (visit.next == visit.edges.size()) {
        visit.on_path = false;
        path.pop_back();
        continue;
      }
      const WaitEdge& edge = *visit.edges[visit.next++];
      const LinkEnd peer = topology.Peer(edge.node, edge.output);
      const auto behind = places.find({peer.node, peer.port, edge.output_vc});
      if (behind == places.end()) continue;
      if (!behind->second.on_path) {
        if (behind->second.next == 0) path.push_back(behind), behind->second.on_path = true;
        continue;
      }
      std::string text;
      for (auto at = std::find(path.begin(), path.end(), behind); at != path.end(); ++at) {
        const WaitEdge& wait = *(*at)->second.edges[(*at)->second.next - 1];
        text +=
            fmt::format("{} VC {} -> {} VC {}; ", topology.LinkName({wait.node, wait.input}),
                        wait.input_vc, topology.LinkName({wait.node, wait.output}), wait.output_vc);
      }
      return text.substr(0, text.size() - 2);
    }
  }
  return "";
}

}  // namespace percs
