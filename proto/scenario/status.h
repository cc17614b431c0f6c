// Faults and events of a run in progress, as messages.
#pragma once

#include <vector>

#include "emulator/management/event_log.h"
#include "emulator/management/fault_service.h"
#include "emulator/topology/topology.h"
#include "percs/v1/control.pb.h"

namespace percs {

// Counts those that are not over, and adds the first 16 of them.
void ActiveFaultsToProto(const std::vector<FaultStatus>& faults, const Topology& topology,
                         v1::StatusReply* reply);
void EventToProto(const FabricEvent& event, v1::FabricEvent* message);

}  // namespace percs
