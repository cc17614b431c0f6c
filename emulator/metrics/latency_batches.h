// Latencies of the packets of a measurement phase, by the tenth of the phase in which they were
// created: what the method of batch means needs (A. M. Law, Simulation Modeling and Analysis,
// chapter 9). Integers, so that sums are the same in every order of hubs.
#pragma once

#include <array>
#include <cstdint>

#include "emulator/base/time.h"

namespace percs {

struct LatencyBatches {
  static constexpr int kBatches = 10;
  std::array<std::uint64_t, kBatches> count{}, sum_ps{};

  // A packet that was created `since_begin` after the phase began, which is `phase` long, and took
  // `latency`. REQUIRES: 0 <= since_begin < phase, phase at most 1000 s.
  void Add(Time since_begin, Time phase, Time latency) {
    const auto batch = static_cast<std::size_t>(since_begin * kBatches / phase);
    ++count[batch];
    sum_ps[batch] += static_cast<std::uint64_t>(latency);
  }
  bool operator==(const LatencyBatches&) const = default;
  void Merge(const LatencyBatches& other) {
    for (std::size_t i = 0; i < kBatches; ++i) {
      count[i] += other.count[i];
      sum_ps[i] += other.sum_ps[i];
    }
  }
};

// What the means of the batches say about the mean latency of the phase.
struct BatchMeans {
  // Half the width of the 95 % confidence interval of the mean, in ps: Student's t with 9 degrees
  // of freedom. Negative: unknown, as a batch has no packet.
  double half_width_ps = -1;
  // The means of the first five and of the last five batches differ by no more than chance
  // explains: a two-sided t test at 1 %, 8 degrees of freedom, that finds less than 5 % of the mean
  // of no account. False also if a batch has no packet.
  bool steady = false;
};
BatchMeans BatchMeansOf(const LatencyBatches& batches);

}  // namespace percs
