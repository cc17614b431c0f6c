// Messages between two SPEs in the manner of paper 004 (figure 6): half the round trip of a message
// that goes back and forth.
#pragma once

#include "absl/status/statusor.h"
#include "emulator/roadrunner/cluster.h"

namespace percs::roadrunner {

// The largest message of the paper: it fits into a local store beside the program.
inline constexpr std::uint32_t kPerfBytesMax = 128 * 1024;

struct PerfResult {
  Distance distance = Distance::kSelf;
  int crossbars = 0;  // passed between triblades
  Time half_round_trip = 0;
  double gigabytes_per_second = 0;
  Digest digest;
};

// Errors of Cluster; INVALID_ARGUMENT for equal ranks or more than kPerfBytesMax; INTERNAL if data
// came out wrong.
absl::StatusOr<PerfResult> MeasurePerf(const RoadrunnerParameters& parameters, Rank a, Rank b,
                                       std::uint32_t bytes, int round_trips = 8,
                                       Protocol protocol = Protocol::kReceiverInitiated);

}  // namespace percs::roadrunner
