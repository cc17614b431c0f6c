// Proves the multicast part of a table set.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "emulator/routing/channel_graph.h"
#include "emulator/routing/live_fabric.h"
#include "emulator/routing/planner.h"

namespace percs {

// Follows every branch of every group from its source: over live links, within the VC positions, to
// no hub twice, to every member that a legal path reaches, and delivered nowhere else. Adds what
// may wait for what to `channels`.
absl::Status CheckMulticast(const Topology& topology, const LiveFabric& live,
                            const TableSet& tables, ChannelGraph* channels, CheckReport* report);

}  // namespace percs
