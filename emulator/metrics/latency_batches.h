// Latencies of the packets of a measurement phase, by the tenth of the phase in which they were
// created: what the method of batch means needs (A. M. Law, Simulation Modeling and Analysis,
// chapter 9). Integers, so that sums are the same in every order of hubs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

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

// Where the warm-up of a phase ends, of which each of `parts` is an equal part: by the marginal
// standard error rule, MSER (K. P. White, An effective truncation heuristic for bias reduction in
// simulation output, Simulation 69, 1997), on the batch means of all parts. With n batches the rule
// leaves out the first d that make (sum of squares of the others about their mean) / (n - d)^2
// least. Ten batches are kept at least; a rule that leaves out more than half of all has found no
// steady part.
struct SteadyPart {
  static constexpr int kParts = 6;
  int warm_up_batches = 0;  // that the rule leaves out, of ten in each part
  int first_part = 0;       // that has none of them: 0 to kParts / 2
  bool found = false;       // also: every batch has packets, and the kept ones are `steady`
  LatencyBatches kept;      // of the parts from first_part on, ten again
};
// REQUIRES: kParts of them.
SteadyPart FindSteadyPart(std::span<const LatencyBatches> parts);

}  // namespace percs
