// Faults as resources: from and to messages.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "emulator/management/fault_service.h"
#include "emulator/management/fault_timeline.h"
#include "emulator/scenario/link_settings.h"
#include "emulator/sim/run.h"
#include "percs/v1/common.pb.h"
#include "percs/v1/fault.pb.h"
#include "percs/v1/scenario.pb.h"

namespace percs {

// What link_down, link_up, link_errors and lanes_lost set is a fault, too, with or without a name
// (emulator/scenario/link_settings.h); parts of blades are none.
// NOT_FOUND or INVALID_ARGUMENT say what would be right; what only the machine can refuse,
// FaultService does.
absl::StatusOr<FaultSpec> BuildFaultSpec(const v1::Fault& fault, const Topology& topology);
// Hubs named like `sn0-d1-h3`, `sn0-d1`, `sn0` or `all`, several with spaces or commas between
// them.
absl::StatusOr<std::vector<NodeId>> ParseHubs(const std::string& names, const Topology& topology);

// What is set: "sn0-d0-h0:LR0: 3 lanes lost".
std::string DescribeSetting(const FaultSpec& spec, const Topology& topology);

void FaultToProto(const FaultStatus& fault, const Topology& topology, v1::FaultStatus* message);

void TimelineToProto(const FaultTimeline& timeline, v1::FaultStatus* message);
void LossesToProto(const Losses& losses, v1::FaultStatus* message);
// A fault of a run that is over, with its whole state.
void FaultToProto(const FaultStatus& fault, const RunResult& result, const Topology& topology,
                  v1::FaultStatus* message);

// Actions on their way to the hubs.
void ActionToProto(const FaultAction& action, v1::FaultActionCommand* message);
// INVALID_ARGUMENT for what is no action.
absl::StatusOr<FaultAction> ActionFromProto(const v1::FaultActionCommand& message);

}  // namespace percs
