// Streams between processes that share no link, while a swapped cable joins them.
//
// THREAD: calls do not overlap.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "daemon/sync/placement.h"
#include "emulator/scenario/fault_action.h"
#include "emulator/sim/fabric.h"

namespace percs {

class CableStreams {
 public:
  // Both live as long as this.
  CableStreams(const Topology& topology, const Placement& placement)
      : topology_(topology), placement_(placement) {}

  // The process to which `process` needs a stream for `action`, if that swaps a cable of one of its
  // hubs to a hub of a process with which it shares no link.
  std::optional<std::uint32_t> Joins(std::uint32_t process, const FaultAction& action) const;
  // They take effect: streams are opened and stay.
  void Note(const std::vector<FaultAction>& actions);
  // `process` is lost, with its streams.
  void Forget(std::uint32_t process);
  // Processes that have such a stream to `process`.
  std::set<std::uint32_t> PeersOf(std::uint32_t process) const;

 private:
  const Topology& topology_;
  const Placement& placement_;
  std::set<std::pair<std::uint32_t, std::uint32_t>> joined_;  // both ways
};

}  // namespace percs
