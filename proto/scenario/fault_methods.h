// The fault methods of the Control service and their replies: the same for a fabric of daemons and
// for the fabric of an MPI program.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "emulator/management/fault_service.h"
#include "percs/v1/control.pb.h"

namespace percs {

// FaultService::Create or FaultService::Update.
using FaultCommand = absl::StatusOr<FaultStatus> (FaultService::*)(const FaultSpec&, Time);

// Errors as those of FaultService; a reply is filled only without one.
absl::Status SetFault(FaultService& faults, FaultCommand command, const FaultSpec& spec,
                      const Topology& topology, Time at, v1::FaultReply* reply);
// The reply has the fault as it was.
absl::Status DeleteFault(FaultService& faults, const std::string& id, const Topology& topology,
                         Time at, v1::FaultReply* reply);
absl::Status ResetFaults(FaultService& faults, Time at, v1::ResetFaultsReply* reply);
// All of them, or the one that the request names.
absl::Status ListFaults(const FaultService& faults, const v1::ListFaultsRequest& request,
                        const Topology& topology, Time now, v1::ListFaultsReply* reply);

}  // namespace percs
