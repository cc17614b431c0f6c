#include "daemon/metrics/endpoint_metrics.h"

#include "daemon/metrics/metric_list.h"

namespace percs {

void AddEndpointMetrics(const EndpointStats& stats, MetricFamilies* families) {
  const auto add = [&](const MetricInfo& metric, std::uint64_t value) {
    families->Add(metric, {}, static_cast<double>(value));
  };
  add(metric::kPrograms, stats.programs);
  add(metric::kProgramsOwing, stats.owing);
  add(metric::kProgramsAttached, stats.attached);
  add(metric::kProgramsReattached, stats.reattached);
  add(metric::kEndpointOperations, stats.operations);
  add(metric::kEndpointBytes, stats.operation_bytes);
  add(metric::kEndpointEvents, stats.events);
  for (std::size_t i = 0; i < kEndpointRefusals; ++i) {
    families->Add(metric::kEndpointRefusals, {{"reason", kEndpointRefusalNames[i]}},
                  static_cast<double>(stats.refused[i]));
  }
}

}  // namespace percs
