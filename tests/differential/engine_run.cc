#include "tests/differential/engine_run.h"

#include <algorithm>
#include <map>

#include "emulator/base/random.h"
#include "emulator/routing/planner.h"
#include "emulator/sim/fabric.h"

namespace percs::reference {
namespace {

// What network management planned (rule 19): its timeline says when; the alerts that had arrived by
// then say what it knew.
std::vector<TableSwitch> TablesOf(const Topology& topology, const Scenario& scenario,
                                  const std::vector<Reroute>& reroutes) {
  const Planner planner(topology);
  std::vector<TableSwitch> tables = {{0, planner.Plan({})}};
  std::vector<FaultSpec> faults = scenario.faults;
  std::stable_sort(faults.begin(), faults.end(),
                   [](const FaultSpec& a, const FaultSpec& b) { return *a.at < *b.at; });
  const bool impaired = std::any_of(faults.begin(), faults.end(), [](const FaultSpec& f) {
    return f.kind != FaultKind::kLinkDown;
  });
  std::map<std::pair<NodeId, PortId>, int> downs;  // less those that came up since
  for (const Reroute& reroute : reroutes) {
    if (impaired) {
      // They may take links down too; then the plan's own record has to do.
      Failures failures;
      for (const LinkEnd& link : reroute.down) ++downs[{link.node, link.port}];
      for (const LinkEnd& link : reroute.up) --downs[{link.node, link.port}];
      for (const auto& [link, count] : downs) {
        if (count > 0) failures.links.insert(link);
      }
      tables.push_back({reroute.committed, planner.Plan(failures)});
      continue;
    }
    Failures failures;
    for (const FaultSpec& fault : faults) {
      if (*fault.at + scenario.parameters.management_latency > reroute.planning_started) continue;
      const LinkEnd link = *fault.select.link, peer = topology.Peer(link.node, link.port);
      const auto lower_end =
          std::min(std::pair(link.node, link.port), std::pair(peer.node, peer.port));
      if (fault.sets == FaultSets::kMended) {
        failures.links.erase(lower_end);
      } else {
        failures.links.insert(lower_end);
      }
    }
    tables.push_back({reroute.committed, planner.Plan(failures)});
  }
  return tables;
}

DeliveryObserver Record(Observed& observed) {
  return [&observed](NodeId node, const Delivery& d) {
    observed.deliveries[node].push_back({d.time, d.source, d.sequence, d.flits, d.path});
  };
}

}  // namespace

absl::StatusOr<EngineRun> RunEngine(const Scenario& scenario) {
  absl::StatusOr<Topology> topology = Topology::Create(scenario.topology);
  if (!topology.ok()) return topology.status();
  EngineRun run;
  run.observed.deliveries.resize(topology->nodes());
  run.observed.stats.resize(topology->nodes());
  RunOptions options;
  options.on_delivery = Record(run.observed);
  options.on_result = [&](const NodeResult& result) {
    run.observed.stats[result.node] = result.stats;
  };
  absl::StatusOr<RunResult> result = RunScenario(scenario, options);
  if (!result.ok()) return result.status();
  run.tables = TablesOf(*topology, scenario, result->reroutes);
  run.violations = result->violations;
  run.digest = result->digest;
  return run;
}

absl::StatusOr<EngineRun> RunEngineWithTables(const Scenario& scenario, const TableSet& tables) {
  const Topology topology = Topology::Create(scenario.topology).value();
  const NodeId nodes = topology.nodes();
  auto fabric = Fabric::Create(scenario, Placement::Single(nodes));
  if (!fabric.ok()) return fabric.status();
  EngineRun run;
  run.tables = {{0, tables}};
  run.observed.deliveries.resize(nodes);
  for (NodeId n = 0; n < nodes; ++n) (*fabric)->InstallTables(n, tables[n]);
  (*fabric)->ObserveDeliveries(Record(run.observed));
  (*fabric)->Start();
  RandomStream windows(scenario.seed, "window lengths");
  std::uint64_t count = 0;
  while (!(*fabric)->work_left().done()) {
    const Time next = (*fabric)->NextEventTime();
    if (next >= kNever) return absl::FailedPreconditionError("work left, but no event");
    const Time longest = (*fabric)->WindowEnd(next) - next;
    (*fabric)->RunWindow(next + 1 + windows.Below(static_cast<std::uint32_t>(longest)));
    ++count;
  }
  std::vector<NodeResult> results;
  for (NodeId n = 0; n < nodes; ++n) {
    results.push_back((*fabric)->Result(n));
    run.observed.stats.push_back(results.back().stats);
  }
  const RunResult merged = MergeResults(scenario, topology, std::move(results), {}, count);
  run.violations = merged.violations;
  run.digest = merged.digest;
  return run;
}

}  // namespace percs::reference
