// Published figures of Roadrunner and CML beside what the emulator measures. docs/roadrunner.md
// says which parameters were calibrated on which rows.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "emulator/base/share_observer.h"
#include "emulator/experiments/row.h"
#include "emulator/roadrunner/sweep_timing.h"

namespace percs::roadrunner {

// Rows whose id begins with `only`. Those of Sweep3D on 97,920 SPEs, RR-052 and RR-053, take
// minutes.
absl::StatusOr<std::vector<ValidationRow>> ValidateRoadrunner(const std::string& only,
                                                              const ShareObserver& progress = {});
// Of a machine with other parameters, to see which rows they move.
absl::StatusOr<std::vector<ValidationRow>> ValidateRoadrunner(
    const std::string& only, const RoadrunnerParameters& parameters,
    const ShareObserver& progress = {});

// 50 x 50 x 50 cells, 10 planes and 3 angles a block, 10 iterations: the comparison on one Cell.
SweepProblem OneCellProblem();
inline constexpr int kFullScaleRanks = 97'920;

// One CU count of the weak-scaling curve.
struct ScalingPoint {
  int cus = 0;
  SweepTimingResult real, ideal;
  // Of the network alone: the pipeline has to fill with an ideal one too.
  double efficiency() const {
    return static_cast<double>(ideal.time) / static_cast<double>(real.time);
  }
};
// In blocks of `k_block` of the 400 planes and `angle_block` of the 6 angles, which both divide.
absl::StatusOr<ScalingPoint> MeasureScaling(const RoadrunnerParameters& parameters, int cus,
                                            int k_block = 20, int angle_block = 3,
                                            const ShareObserver& progress = {});

}  // namespace percs::roadrunner
