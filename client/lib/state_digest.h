// What every node has been delivered up to a virtual time, as one number: executions of one
// scenario that have the same at the same time are the same so far. (Other counters are left out:
// between two windows some processes know more of what is on its way than others.)
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "emulator/sim/fabric.h"
#include "percs/v1/control.pb.h"

namespace percs {

// Of all nodes that are not lost.
std::string DeliveredDigest(const Fabric& fabric);
// REQUIRES: counters of every node, in order.
absl::StatusOr<std::string> DeliveredDigest(const v1::GetCountersReply& counters);

}  // namespace percs
