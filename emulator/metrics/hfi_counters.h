// Names of what each HFI counts for windows, by HfiCounter: "sent", "send_dropped"; and each PCI
// Express port.
#pragma once

#include "emulator/metrics/node_stats.h"

namespace percs {

const char* HfiCounterName(HfiCounter counter);
const char* PcieCounterName(PcieCounter counter);  // "bytes_in"

}  // namespace percs
