// Results of nodes on their way from the daemons, which compute them, to the controller, which only
// merges.
#pragma once

#include "absl/status/statusor.h"
#include "emulator/sim/fabric.h"
#include "percs/v1/sync.pb.h"

namespace percs {

using PackedTallies = google::protobuf::RepeatedField<std::uint64_t>;
void PackTallies(const std::vector<FaultTally>& tallies, PackedTallies* packed);
absl::StatusOr<std::vector<FaultTally>> UnpackTallies(const PackedTallies& packed);

void NodeResultToProto(const NodeResult& result, v1::NodeResult* message);
// INVALID_ARGUMENT for numbers that do not fit together, and names that are not known.
absl::StatusOr<NodeResult> NodeResultFromProto(const v1::NodeResult& message);

}  // namespace percs
