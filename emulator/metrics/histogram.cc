#include "emulator/metrics/histogram.h"

#include <algorithm>
#include <cmath>

namespace percs {

void Histogram::Merge(const Histogram& other) {
  if (other.count == 0) return;
  count += other.count;
  sum += other.sum;
  max = std::max(max, other.max);
  for (std::size_t b = 0; b < kBuckets; ++b) buckets[b] += other.buckets[b];
}

std::uint64_t Histogram::Quantile(double q) const {
  if (count == 0) return 0;
  const auto rank = static_cast<std::uint64_t>(std::ceil(q * static_cast<double>(count)));
  std::uint64_t seen = 0;
  for (std::size_t b = 0; b < kBuckets; ++b) {
    seen += buckets[b];
    if (seen < std::max<std::uint64_t>(rank, 1)) continue;
    if (b < 8) return b;
    const int log = static_cast<int>(b / 8) + 2;
    const std::uint64_t upper = ((static_cast<std::uint64_t>(b % 8) + 9) << (log - 3)) - 1;
    return std::min(upper, max);
  }
  return max;
}

}  // namespace percs
