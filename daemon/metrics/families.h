// What a scrape answers, gathered sample by sample. Names and units by the Prometheus conventions:
// seconds, bytes, counters end in _total.
#pragma once

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "emulator/metrics/node_stats.h"
#include "prometheus/metric_family.h"

namespace percs {

// Base units of Prometheus.
constexpr double InSeconds(double picoseconds) {
  return picoseconds / static_cast<double>(kSecond);
}

// One metric of the catalogue (metric_list.h).
struct MetricInfo {
  const char* name;
  prometheus::MetricType type;
  const char* help;
};

class MetricFamilies {
 public:
  using Labels = std::vector<std::pair<std::string, std::string>>;

  void Add(const MetricInfo& metric, const Labels& labels, double value);
  // Times of a histogram of picoseconds, in seconds. A value counts below an edge if all of its
  // bucket does, so it may count one edge later than it should, never earlier.
  void AddTimes(const MetricInfo& metric, const Labels& labels, const Histogram& times);
  // `counts` by bucket, with one more than there are upper `edges`.
  void AddBuckets(const MetricInfo& metric, const Labels& labels, absl::Span<const double> edges,
                  const std::vector<std::uint64_t>& counts, double sum);
  // The page, in the text format of Prometheus.
  std::string Text() const;

 private:
  prometheus::ClientMetric& NewSample(const MetricInfo& metric, const Labels& labels);

  std::vector<prometheus::MetricFamily> families_;
};

// Upper edges of latency histograms in seconds: 100 ns to 1 s, three per decade.
const std::vector<double>& LatencyEdges();

}  // namespace percs
