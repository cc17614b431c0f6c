// The measurement loop of paper 001 section 4: every SPE of the group makes the same call again and
// again; and every call's data are checked against a serial reference.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "emulator/cell/blade.h"
#include "emulator/cell/collectives/collectives.h"

namespace percs::cell {

enum class LoopMode : std::uint8_t {
  kBackToBack,  // an SPE makes its next call as soon as it has left the last; time per call
  kAligned,  // all enter a call at one instant, after all have left the last; until the last leaves
};

struct CollectiveLoop {
  Collective collective = Collective::kBarrier;
  AlgorithmSpec spec;
  int spes = kSpes;
  std::uint32_t bytes = 128;    // of a broadcast
  std::uint32_t elements = 32;  // of a reduction
  ReduceOp op = ReduceOp::kAdd;
  ReduceType type = ReduceType::kFloat;
  std::uint64_t iterations = 16;
  LoopMode mode = LoopMode::kBackToBack;
  // Each SPE waits a random time up to this before every call; the time then says nothing.
  Time delay_max = 0;
  std::uint64_t seed = 1;
};

struct CollectiveTiming {
  double nanoseconds = 0;           // per call
  double gigabytes_per_second = 0;  // broadcasts: what all others receive, over the time
  std::uint64_t wrong = 0;  // calls after which data were not what the reference says, or a barrier
                            // that an SPE left before all had entered
  BladeResult blade;
};

// Errors of the loop itself (no such group), and of programs that broke a rule.
absl::StatusOr<CollectiveTiming> MeasureCollective(const BladeParameters& parameters,
                                                   const CollectiveLoop& loop);

// A loop that runs on SPEs 0 to spes - 1 of some blade, each with a program of RunLoop.
struct RunningLoop {
  const CollectiveLoop* loop;
  CollectiveGroup group;
  std::vector<std::uint64_t> calls;  // by rank, entered
  Time longest = 0;                  // aligned calls
  std::uint64_t wrong = 0;
};
Task<> RunLoop(Spe& spe, RunningLoop* running);

}  // namespace percs::cell
