// Which process has which hubs, and which processes share links. Controller and daemons compute
// both from the same few numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "emulator/sim/fabric.h"

namespace percs {

// Contiguous blocks as even as they go.
std::vector<std::uint64_t> EvenBlocks(std::uint64_t nodes, std::uint64_t processes);

// Contiguous blocks of hubs for the daemons, in the order of processes; network management lives in
// the process after the last of them, the controller. INVALID_ARGUMENT with the sums.
absl::StatusOr<Placement> MakePlacement(NodeId nodes,
                                        absl::Span<const std::uint64_t> nodes_per_process,
                                        int self);

// Virtual channels of the cables of `self` that may be swapped, so that they lead to any process.
std::size_t SwappableChannels(const Topology& topology, const Placement& placement,
                              std::uint32_t self);

// Virtual channels of the links that `self` shares with each other process, in both directions; no
// entry where there are none.
std::map<std::uint32_t, std::size_t> SharedChannels(const Topology& topology,
                                                    const Placement& placement, std::uint32_t self);

}  // namespace percs
