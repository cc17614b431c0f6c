// The result of a run as a message and back.
#pragma once

#include "absl/status/statusor.h"
#include "emulator/sim/run.h"
#include "percs/v1/common.pb.h"

namespace percs {

void RerouteToProto(const Reroute& reroute, const Topology& topology, v1::Reroute* message);
void RunResultToProto(const RunResult& result, const Topology& topology, v1::RunResult* message);
// Trees and faults stay in the message, and events are not in it. INVALID_ARGUMENT names what this
// version does not know: a counter, a drop reason, a link.
absl::StatusOr<RunResult> RunResultFromProto(const v1::RunResult& message,
                                             const Topology& topology);

}  // namespace percs
