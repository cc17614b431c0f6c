#include "emulator/metrics/latency_batches.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

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

}  // namespace percs
