#include "tests/differential/network_check.h"

#include <utility>

#include "fmt/format.h"
#include "tests/differential/checkers.h"
#include "tests/differential/compare.h"
#include "tests/differential/engine_run.h"
#include "tests/differential/random_network.h"
#include "tests/differential/split_check.h"

namespace percs::reference {
namespace {

std::vector<std::string> Violations(const Scenario& scenario, const Topology& topology,
                                    const ReferenceResult& result) {
  std::vector<std::vector<ReferenceGrant>> grants;
  std::vector<NodeStats> stats;
  for (const ReferenceNode& node : result.nodes) {
    grants.push_back(node.grants);
    stats.push_back(node.stats);
  }
  std::vector<std::string> all;
  for (const auto& violations :
       {CheckConservation(stats), CheckVcPositions(grants, &topology), CheckDrained(result),
        CheckFlitOrder(grants, scenario.parameters, !scenario.faults.empty())}) {
    for (const std::string& violation : violations) all.push_back("reference: " + violation);
  }
  return all;
}

}  // namespace

Outcome RunBoth(const Scenario& scenario, bool random_tables) {
  Outcome outcome;
  const Topology topology = Topology::Create(scenario.topology).value();
  absl::StatusOr<EngineRun> engine =
      random_tables ? RunEngineWithTables(scenario, RandomTables(topology, scenario.seed))
                    : RunEngine(scenario);
  if (!engine.ok()) {
    outcome.differences = {fmt::format("engine: {}", std::string(engine.status().message()))};
    return outcome;
  }
  ReferenceInput input;
  input.topology = &topology;
  input.parameters = scenario.parameters;
  input.packets = std::get<ScriptedWorkload>(scenario.workload).packets;
  input.faults = scenario.faults;
  input.cables = scenario.cables;
  input.service = scenario.service;
  input.tables = engine->tables;
  input.seed = scenario.seed;
  input.routing = scenario.routing;
  outcome.digest = engine->digest;
  outcome.reference = RunReference(input);
  outcome.differences = Differences(outcome.reference, engine->observed);
  for (std::string& v : Violations(scenario, topology, outcome.reference))
    outcome.differences.push_back(std::move(v));
  for (const std::string& v : engine->violations) outcome.differences.push_back("engine: " + v);
  return outcome;
}

std::string FailureOf(const NetworkPart& part) {
  const Scenario scenario = part.ToScenario();
  const Outcome outcome = RunBoth(scenario, part.random_tables);
  if (!outcome.differences.empty()) {
    return fmt::format("{} tables: {}", part.random_tables ? "random" : "planned",
                       outcome.differences.front());
  }
  if (part.random_tables) return "";
  const std::vector<std::string> wrong = SplitAgainst(scenario, outcome.digest);
  return wrong.empty() ? "" : wrong.front();
}

}  // namespace percs::reference
