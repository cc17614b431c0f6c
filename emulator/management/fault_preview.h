// What a fault would touch, told before it is injected: pairs of hubs and their routes by the
// tables in effect, trees of CAUs, hubs that it cuts off. Counts routes of mode hw_direct, every
// choice of a table for one, up to the hops a route can have; packets of other modes may cross its
// links too.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "emulator/management/tree_status.h"
#include "emulator/routing/planner.h"
#include "emulator/scenario/fault_spec.h"

namespace percs {

struct FaultPreview {
  FaultTargets targets;
  std::uint64_t seed = 0;
  std::vector<std::pair<NodeId, NodeId>> pairs;  // source, destination
  std::uint64_t routes = 0;
  std::uint64_t unreachable_pairs = 0;  // also after a reroute
  std::vector<std::string> trees;
  std::vector<NodeId> cut_off;  // hubs without a link left
  std::uint64_t windows = 0;    // that nothing reaches
  bool loses_packets = false;   // rather than delaying them
};

// The fabric as network management knows it.
struct FabricView {
  const Topology& topology;
  const P7ihParameters& parameters;
  std::uint64_t scenario_seed = 1;
  Failures failures = {};
  std::function<std::shared_ptr<const HubTables>(NodeId)> tables;
  std::vector<TreeStatus> trees = {};
};

// A larger machine would be held too long while its routes are counted and a reroute is
// planned.
inline constexpr NodeId kPreviewHubsMax = 256;

// Errors as those of creating it; OUT_OF_RANGE above kPreviewHubsMax hubs.
absl::StatusOr<FaultPreview> PreviewFault(const FaultSpec& spec, const FabricView& view);

}  // namespace percs
