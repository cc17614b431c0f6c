// Names of the counters of a CAU, in the order of NodeStats::cau.
#pragma once

#include <array>
#include <string>

#include "emulator/metrics/node_stats.h"

namespace percs {

// "reduce_sum_double", "multicasts", "packets_resent".
const std::array<std::string, kCauCounters>& CauCounterNames();

}  // namespace percs
