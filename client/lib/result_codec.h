// A run's result as the wire carries it, back into the struct that an in-process run returns, so
// that both are printed by the same code.
#pragma once

#include "absl/status/statusor.h"
#include "emulator/sim/run.h"
#include "percs/v1/common.pb.h"
#include "percs/v1/scenario.pb.h"

namespace percs {

// INVALID_ARGUMENT names what this version does not know: a port, a drop reason, a link.
absl::StatusOr<RunResult> ResultFromProto(const v1::RunResult& message, const Topology& topology);
TopologySpec SpecFromProto(const v1::Topology& message,
                           const google::protobuf::RepeatedPtrField<v1::BladeSite>& blades);
absl::StatusOr<NodeStats> StatsFromProto(const v1::Counters& message);

}  // namespace percs
