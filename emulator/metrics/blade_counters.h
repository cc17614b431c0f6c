// Names of the counters of a Cell blade, in the order of NodeStats::blade.
#pragma once

#include <array>
#include <string>

#include "emulator/metrics/node_stats.h"

namespace percs {

// "dma_bytes", "eib_transfers_cell0".
const std::array<std::string, kBladeCounters>& BladeCounterNames();

}  // namespace percs
