// Names of what each HFI counts for windows, by HfiCounter: "sent", "send_dropped".
#pragma once

#include "emulator/metrics/node_stats.h"

namespace percs {

const char* HfiCounterName(HfiCounter counter);

}  // namespace percs
