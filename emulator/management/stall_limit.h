// How long flits may be in the fabric while none starts over a link: `stall_limit`, after which the
// run is reported as a deadlock, has to be longer.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "emulator/base/time.h"
#include "emulator/scenario/fault_spec.h"
#include "emulator/scenario/p7ih.h"

namespace percs {

// INVALID_ARGUMENT with the arithmetic. `longest_wire`: of a cable that has a wire of its own.
// `faults`: those that may act at the same time. REQUIRES: their latencies are in range.
absl::Status CheckStallLimit(const P7ihParameters& parameters, bool infiniband, Time longest_wire,
                             const std::vector<FaultSpec>& faults);

}  // namespace percs
