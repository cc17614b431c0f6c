// Metrics of the hubs and blades of one process. Every sample is labelled with the node's name,
// never with the process that happens to host it.
#pragma once

#include <map>

#include "absl/status/statusor.h"
#include "daemon/metrics/families.h"
#include "daemon/metrics/node_state.h"

namespace percs {

enum class MetricsDetail {
  kHub,   // sums of a hub, by class of link
  kPort,  // each port of a hub
  kVc,    // and each of its virtual channels
};
// INVALID_ARGUMENT unless `hub`, `port` or `vc`.
absl::StatusOr<MetricsDetail> ParseMetricsDetail(const std::string& text);

// Of all hubs, and of some hubs another one.
struct DetailOfHubs {
  MetricsDetail all = MetricsDetail::kPort;
  std::map<NodeId, MetricsDetail> some = {};
  MetricsDetail Of(NodeId node) const {
    const auto found = some.find(node);
    return found == some.end() ? all : found->second;
  }
};

void AddHubMetrics(const HostState& host, const DetailOfHubs& detail, MetricFamilies* families);

}  // namespace percs
