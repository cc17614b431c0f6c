// Metrics of the hubs and blades of one process. Every sample is labelled with the node's name, never
// with the process that happens to host it.
#pragma once

#include "absl/status/statusor.h"
#include "daemon/metrics/families.h"
#include "daemon/metrics/node_state.h"

namespace percs {

enum class MetricsDetail {
  kHub,   // sums of a hub, by class of link
  kPort,  // each port of a hub
};
// INVALID_ARGUMENT unless `hub` or `port`.
absl::StatusOr<MetricsDetail> ParseMetricsDetail(const std::string& text);

void AddHubMetrics(const HostState& host, MetricsDetail detail, MetricFamilies* families);

}  // namespace percs
