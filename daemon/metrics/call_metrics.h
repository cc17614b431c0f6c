// What callers ask of this process over gRPC, by the names that go-grpc-prometheus has given to it.
#pragma once

#include "daemon/metrics/families.h"

namespace percs {

// Of the methods that were called at least once, so that a page has what its server serves and no
// more.
void AddCallMetrics(MetricFamilies* families);

}  // namespace percs
