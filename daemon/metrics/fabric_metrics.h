// Metrics of a whole fabric, as its controller sees it, and where Prometheus finds its daemons.
#pragma once

#include <string>

#include "daemon/metrics/families.h"
#include "percs/v1/control.pb.h"

namespace percs {

void AddFabricMetrics(const v1::StatusReply& status, MetricFamilies* families);

// A JSON list for http_sd_configs of Prometheus: the controller at `own_address`, and every daemon
// that serves metrics.
std::string DiscoveryList(const v1::StatusReply& status, const std::string& own_address);

}  // namespace percs
