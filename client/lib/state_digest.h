// The deliveries of all nodes up to a virtual time, as one number: if two executions of a scenario
// have the same number at the same time, they are the same so far. (Other counters are left out:
// between two windows some processes know more about packets in flight than others.)
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
