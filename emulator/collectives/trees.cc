#include "emulator/collectives/trees.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "fmt/format.h"

namespace percs {
namespace {

std::vector<NodeId> Nodes(const CollectiveWorkload& workload) {
  std::vector<NodeId> nodes(workload.placement.nodes);
  std::iota(nodes.begin(), nodes.end(), 0);
  return nodes;
}

}  // namespace

Scenario WithCollectiveTree(Scenario scenario) {
  const auto* workload = std::get_if<CollectiveWorkload>(&scenario.workload);
  if (workload && scenario.trees.empty() && UsesCauTree(*workload)) {
    scenario.trees.push_back({.name = "leaders", .members = Nodes(*workload)});
  }
  return scenario;
}

absl::Status CheckCollectiveTree(const CollectiveWorkload& workload,
                                 const std::vector<TreeSpec>& trees) {
  if (!UsesCauTree(workload)) return absl::OkStatus();
  const std::size_t tree = workload.cau_tree;
  if (tree >= trees.size()) {
    return absl::InvalidArgumentError(
        fmt::format("{} {} on tree {}: the scenario has {} trees", workload.algorithm,
                    OperationName(workload.operation), tree, trees.size()));
  }
  std::vector<NodeId> members = trees[tree].members;
  std::sort(members.begin(), members.end());
  if (members == Nodes(workload)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("{} {}: the {} participants of tree {} ('{}') are not the nodes with tasks, "
                  "which are 0 to {}",
                  workload.algorithm, OperationName(workload.operation), members.size(), tree,
                  trees[tree].name, workload.placement.nodes - 1));
}

}  // namespace percs
