// What daemons answer to a Collect, as messages and back.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/metrics/node_state.h"
#include "emulator/chip/wait_edge.h"
#include "percs/v1/sync.pb.h"

namespace percs {

// Without what only scrapes show.
void NodeStateToProto(const NodeState& state, v1::NodeSnapshot* message);
// INVALID_ARGUMENT for counters or tallies of another length.
absl::StatusOr<NodeState> NodeStateFromProto(const v1::NodeSnapshot& message);

void WaitEdgesToProto(const std::vector<WaitEdge>& edges, v1::WaitEdges* message);
// INVALID_ARGUMENT for a port or a virtual channel that no hub has.
absl::StatusOr<std::vector<WaitEdge>> WaitEdgesFromProto(const v1::WaitEdges& message);

}  // namespace percs
