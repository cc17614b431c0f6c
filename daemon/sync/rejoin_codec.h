// Hubs that rejoin in the middle of a run, as messages between controller and daemons
// (docs/protocol.md, "Rejoining").
#pragma once

#include "absl/status/statusor.h"
#include "emulator/management/loss.h"
#include "percs/v1/sync.pb.h"

namespace percs {

// `whole`: with what only the process needs that has the hubs.
void RejoinToProto(const RejoinedHubs& rejoined, bool whole, v1::RejoinCommand* message);
// INVALID_ARGUMENT for impossible values; DATA_LOSS for tables that do not match their hash.
absl::StatusOr<RejoinedHubs> RejoinFromProto(const v1::RejoinCommand& message,
                                             const Topology& topology,
                                             const P7ihParameters& parameters);

void LossesToProto(const LossRecord& losses, v1::Configure* message);
// INVALID_ARGUMENT for hubs that do not exist.
absl::StatusOr<LossRecord> LossesFromProto(const v1::Configure& message, const Topology& topology);

}  // namespace percs
