// Results and snapshots of hubs on their way from the daemons, which compute them, to the
// controller, which only merges.
#pragma once

#include "absl/status/statusor.h"
#include "emulator/sim/fabric.h"
#include "percs/v1/sync.pb.h"

namespace percs {

void PackStats(const NodeStats& stats, google::protobuf::RepeatedField<std::uint64_t>* packed);
// INVALID_ARGUMENT if the number of counters is not ours.
absl::StatusOr<NodeStats> UnpackStats(const google::protobuf::RepeatedField<std::uint64_t>& packed);

using PackedTallies = google::protobuf::RepeatedField<std::uint64_t>;
void PackTallies(const std::vector<FaultTally>& tallies, PackedTallies* packed);
absl::StatusOr<std::vector<FaultTally>> UnpackTallies(const PackedTallies& packed);

void PackResult(const NodeResult& result, v1::NodeResult* message);
absl::StatusOr<NodeResult> UnpackResult(const v1::NodeResult& message);

}  // namespace percs
