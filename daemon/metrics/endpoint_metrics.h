// Programs outside that have windows of the hubs of this process (docs/endpoint.md).
#pragma once

#include "daemon/endpoint/endpoint_stats.h"
#include "daemon/metrics/families.h"

namespace percs {

void AddEndpointMetrics(const EndpointStats& stats, MetricFamilies* families);

}  // namespace percs
