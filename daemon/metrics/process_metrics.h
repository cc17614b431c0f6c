// What every process says about itself: versions, its calls, and what the kernel knows.
#pragma once

#include "daemon/metrics/families.h"

namespace percs {

void AddProcessMetrics(MetricFamilies* families);

}  // namespace percs
