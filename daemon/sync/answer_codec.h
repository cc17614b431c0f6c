// Answers of daemons to a Collect, as messages and back.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/metrics/node_state.h"
#include "emulator/chip/wait_edge.h"
#include "emulator/sim/fabric.h"
#include "percs/v1/sync.pb.h"

namespace percs {

// INVALID_ARGUMENT unless `process` has `node`. `what` it sent of it is for the message.
absl::Status CheckOwner(const Placement& placement, std::uint32_t process, std::uint32_t node,
                        const char* what);

// Without what only scrapes show.
void NodeStateToProto(const NodeState& state, v1::NodeSnapshot* message);
// INVALID_ARGUMENT for counters or tallies of another length, and for places that no node has.
absl::StatusOr<NodeState> NodeStateFromProto(const v1::NodeSnapshot& message);

void WaitEdgesToProto(const std::vector<WaitEdge>& edges, v1::WaitEdges* message);
// INVALID_ARGUMENT for a port or a virtual channel that no hub has.
absl::StatusOr<std::vector<WaitEdge>> WaitEdgesFromProto(const v1::WaitEdges& message);

}  // namespace percs
