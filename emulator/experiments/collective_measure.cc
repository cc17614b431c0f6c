#include "emulator/experiments/collective_measure.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "fmt/format.h"

namespace percs {

absl::StatusOr<TopologySpec> FabricOf(std::uint32_t nodes) {
  TopologySpec spec;
  spec.supernodes = spec.drawers = spec.hubs = 1;
  if (nodes <= 8) {
    spec.hubs = static_cast<int>(std::max(nodes, 2u));  // a network of one hub is none
  } else if (nodes <= 32) {
    spec.hubs = 8;
    spec.drawers = static_cast<int>((nodes + 7) / 8);
  } else if (nodes <= 16 * 32) {
    spec.hubs = 8;
    spec.drawers = 4;
    spec.supernodes = static_cast<int>((nodes + 31) / 32);
    spec.d_links_per_pair = 32;
  } else {
    return absl::InvalidArgumentError(fmt::format(
        "{} nodes: write 1 to 512, so that every hub has a D link to each supernode", nodes));
  }
  return spec;
}

absl::StatusOr<Scenario> CollectiveScenario(const CollectiveWorkload& workload) {
  const auto topology = FabricOf(workload.placement.nodes);
  if (!topology.ok()) return topology.status();
  Scenario scenario;
  scenario.name = "collective";
  scenario.topology = *topology;
  scenario.workload = workload;
  return scenario;
}

absl::StatusOr<RunResult> MeasureCollective(const CollectiveWorkload& workload,
                                            const RunOptions& options,
                                            const P7ihParameters& parameters) {
  auto scenario = CollectiveScenario(workload);
  if (!scenario.ok()) return scenario.status();
  scenario->parameters = parameters;
  auto result = RunScenario(*scenario, options);
  if (result.ok() && !result->violations.empty())
    return absl::InternalError(result->violations.front());
  return result;
}

bool SettlingCalls::Settled(double mean) {
  const double before = std::exchange(last_, mean);
  if (before > 0 && std::abs(mean - before) <= kSettledChange * mean) return true;
  if (calls_ == kCallsMax) return true;
  calls_ = std::min(2 * calls_, kCallsMax);
  return false;
}

}  // namespace percs
