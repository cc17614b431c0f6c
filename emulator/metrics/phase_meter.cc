#include "emulator/metrics/phase_meter.h"

#include <algorithm>

#include "emulator/base/check.h"

namespace percs {

const char* PathLatencies::ClassText(Class path) {
  constexpr const char* kTexts[] = {"same drawer",
                                    "same supernode",
                                    "other supernode, direct",
                                    "other supernode, indirect",
                                    "edge or multicast",
                                    "network of switches"};
  return kTexts[path];
}

PathClassifier::PathClassifier(const Topology& topology, NodeId node) : node_(node) {
  if (node >= topology.hubs()) return;
  hubs_ = topology.hubs();
  drawer_hubs_ = static_cast<NodeId>(topology.spec().hubs);
  supernode_hubs_ = static_cast<NodeId>(topology.hubs_per_supernode());
  drawer_ = node / drawer_hubs_ * drawer_hubs_;
  supernode_ = node / supernode_hubs_ * supernode_hubs_;
  // To the topology a network of switches is one drawer.
  if (topology.graph() != nullptr) near_ = PathLatencies::kSwitches;
}

void PathLatencies::Merge(const PathLatencies& other) {
  for (std::size_t path = 0; path < kClasses; ++path) {
    for (std::size_t hops = 0; hops < kHops; ++hops) {
      Cell& cell = cells[path][hops];
      const Cell& more = other.cells[path][hops];
      cell.count += more.count;
      cell.sum_ps += more.sum_ps;
      cell.max_ps = std::max(cell.max_ps, more.max_ps);
    }
  }
}

void PhasePart::Merge(const PhasePart& other) {
  batches.Merge(other.batches);
  paths.Merge(other.paths);
  offered += other.offered;
  accepted += other.accepted;
  injected += other.injected;
  latency.Merge(other.latency);
}

void PhaseMeter::DeliveredInPart(PathLatencies::Class path, int hops, Time created, Time latency) {
  PERCS_CHECK(Holds(created));
  const std::size_t index = IndexOf(created);
  PhasePart& part = parts_[index];
  const Time from = BeginOf(index);
  part.batches.Add(created - from, BeginOf(index + 1) - from, latency);
  part.paths.Add(path, hops, latency);
  part.latency.Add(static_cast<std::uint64_t>(latency));
}

}  // namespace percs
