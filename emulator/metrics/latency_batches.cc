#include "emulator/metrics/latency_batches.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <vector>

#include "emulator/base/check.h"

namespace percs {
namespace {

constexpr double kStudent95Of9 = 2.262157, kStudent99Of8 = 3.355387;
constexpr double kOfNoAccount = 0.05;  // of the mean

double Mean(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double SumOfSquares(std::span<const double> values) {
  const double mean = Mean(values);
  double sum = 0;
  for (const double value : values) sum += (value - mean) * (value - mean);
  return sum;
}

}  // namespace

BatchMeans BatchMeansOf(const LatencyBatches& batches) {
  constexpr std::size_t kBatches = LatencyBatches::kBatches, kHalf = kBatches / 2;
  std::array<double, kBatches> means;
  for (std::size_t i = 0; i < kBatches; ++i) {
    if (batches.count[i] == 0) return {};
    means[i] = static_cast<double>(batches.sum_ps[i]) / static_cast<double>(batches.count[i]);
  }
  const std::span<const double> all(means);
  BatchMeans result;
  result.half_width_ps = kStudent95Of9 * std::sqrt(SumOfSquares(all) / (kBatches - 1) / kBatches);
  const auto first = all.first(kHalf), last = all.last(kHalf);
  const double pooled = (SumOfSquares(first) + SumOfSquares(last)) / (kBatches - 2);
  const double by_chance = kStudent99Of8 * std::sqrt(pooled * 2 / kHalf);
  result.steady =
      std::abs(Mean(first) - Mean(last)) <= std::max(by_chance, kOfNoAccount * Mean(all));
  return result;
}

SteadyPart FindSteadyPart(std::span<const LatencyBatches> parts) {
  constexpr int kBatches = LatencyBatches::kBatches;
  PERCS_CHECK(parts.size() == SteadyPart::kParts);
  SteadyPart result;
  std::vector<double> means;
  for (const LatencyBatches& part : parts) {
    for (std::size_t i = 0; i < kBatches; ++i) {
      const double count = static_cast<double>(part.count[i]);
      means.push_back(count > 0 ? static_cast<double>(part.sum_ps[i]) / count : -1);
    }
  }
  const bool complete = std::none_of(means.begin(), means.end(), [](double m) { return m < 0; });
  const int n = static_cast<int>(means.size());
  double least = -1;
  for (int d = 0; complete && d + kBatches <= n; ++d) {
    const double rest = n - d;
    const double error =
        SumOfSquares(std::span(means).subspan(static_cast<std::size_t>(d))) / (rest * rest);
    if (least >= 0 && error >= least) continue;
    least = error;
    result.warm_up_batches = d;
  }
  result.first_part =
      std::min((result.warm_up_batches + kBatches - 1) / kBatches, SteadyPart::kParts / 2);
  const int kept_parts = SteadyPart::kParts - result.first_part;
  for (int i = 0; i < kept_parts * kBatches; ++i) {
    const LatencyBatches& part = parts[static_cast<std::size_t>(result.first_part + i / kBatches)];
    const auto from = static_cast<std::size_t>(i % kBatches);
    const auto to = static_cast<std::size_t>(i / kept_parts);
    result.kept.count[to] += part.count[from];
    result.kept.sum_ps[to] += part.sum_ps[from];
  }
  result.found = complete && 2 * result.warm_up_batches <= n && BatchMeansOf(result.kept).steady;
  return result;
}

}  // namespace percs
