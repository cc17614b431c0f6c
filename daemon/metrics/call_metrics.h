// gRPC calls to this process, with the metric names of go-grpc-prometheus.
#pragma once

#include "daemon/metrics/families.h"

namespace percs {

// Of the methods that were called at least once, so that a page has what its server serves and no
// more.
void AddCallMetrics(MetricFamilies* families);

}  // namespace percs
