#include "daemon/metrics/families.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "prometheus/text_serializer.h"

namespace percs {

const std::vector<double>& LatencyEdges() {
  static const auto* const edges =
      new std::vector<double>{1e-7, 2e-7, 5e-7, 1e-6, 2e-6, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4,
                              5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2, 0.1,  0.2,  0.5,  1};
  return *edges;
}

prometheus::ClientMetric& MetricFamilies::NewSample(const MetricInfo& metric,
                                                    const Labels& labels) {
  auto family = std::find_if(families_.begin(), families_.end(),
                             [&metric](const auto& f) { return f.name == metric.name; });
  if (family == families_.end()) {
    family = families_.insert(family, {metric.name, metric.help, metric.type, {}});
  }
  prometheus::ClientMetric& sample = family->metric.emplace_back();
  sample.label.reserve(labels.size());
  for (const auto& [name, value] : labels) sample.label.push_back({name, value});
  return sample;
}

void MetricFamilies::Add(const MetricInfo& metric, const Labels& labels, double value) {
  prometheus::ClientMetric& sample = NewSample(metric, labels);
  if (metric.type == prometheus::MetricType::Counter) {
    sample.counter.value = value;
  } else {
    sample.gauge.value = value;
  }
}

void MetricFamilies::AddTimes(const MetricInfo& metric, const Labels& labels,
                              const Histogram& times) {
  prometheus::ClientMetric& sample = NewSample(metric, labels);
  sample.histogram.sample_count = times.count;
  sample.histogram.sample_sum = InSeconds(static_cast<double>(times.sum));
  std::uint64_t below = 0;
  int bucket = 0;
  for (const double edge : LatencyEdges()) {
    const auto edge_ps =
        static_cast<std::uint64_t>(std::llround(edge * static_cast<double>(kSecond)));
    for (; bucket < Histogram::Bucket(edge_ps); ++bucket) {
      below += times.buckets[static_cast<std::size_t>(bucket)];
    }
    sample.histogram.bucket.push_back({below, edge});
  }
  sample.histogram.bucket.push_back({times.count, std::numeric_limits<double>::infinity()});
}

void MetricFamilies::AddBuckets(const MetricInfo& metric, const Labels& labels,
                                absl::Span<const double> edges,
                                const std::vector<std::uint64_t>& counts, double sum) {
  prometheus::ClientMetric& sample = NewSample(metric, labels);
  std::uint64_t below = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    below += counts[i];
    sample.histogram.bucket.push_back(
        {below, i < edges.size() ? edges[i] : std::numeric_limits<double>::infinity()});
  }
  sample.histogram.sample_count = below;
  sample.histogram.sample_sum = sum;
}

std::string MetricFamilies::Text() const {
  return prometheus::TextSerializer().Serialize(families_);
}

}  // namespace percs
