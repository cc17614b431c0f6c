// Distribution of times, in integers.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "emulator/base/on_demand.h"

namespace percs {

// Fixed buckets: 8 per power of two of picoseconds, so a quantile is right within 12.5 %.
class Histogram {
 public:
  static constexpr int kBuckets = 8 * 44;
  void Add(std::uint64_t value) {
    ++count;
    sum += value;
    if (value > max) max = value;
    ++buckets[static_cast<std::size_t>(Bucket(value))];
  }
  void Merge(const Histogram& other);
  double Mean() const { return count ? static_cast<double>(sum) / static_cast<double>(count) : 0; }
  // Upper edge of the bucket that holds the quantile, but never above max.
  std::uint64_t Quantile(double q) const;

  class Buckets {
   public:
    using Counts = std::array<std::uint64_t, kBuckets>;
    std::uint64_t operator[](std::size_t i) const { return all()[i]; }
    std::uint64_t& operator[](std::size_t i) { return all()[i]; }
    const Counts& all() const { return counts_.to_read(); }
    Counts& all() { return counts_.to_write(); }
    void Trim() { counts_.Trim(); }
    bool operator==(const Buckets&) const = default;

   private:
    OnDemand<Counts> counts_;
  };

  std::uint64_t count = 0, sum = 0, max = 0;
  Buckets buckets;

  static int Bucket(std::uint64_t v) {
    if (v < 8) return static_cast<int>(v);
    const int log = std::bit_width(v) - 1;
    const int b = (log - 2) * 8 + static_cast<int>((v >> (log - 3)) & 7);
    return b < kBuckets ? b : kBuckets - 1;
  }
};

}  // namespace percs
