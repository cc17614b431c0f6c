// A grid of scenarios: one file, and values for some of its fields.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "percs/v1/scenario.pb.h"

namespace percs {

// One field and the values that it gets, as texts of a `--set`.
struct SweepAxis {
  std::string key;
  std::vector<std::string> values;
};

// `KEY=VALUES`. VALUES is a list `a,b,c`, each a value or a range `first..last:step` of numbers
// with the same unit (`0.1..0.9:0.1`, `1us..5us:2us`); without a step, whole numbers go up by 1. A
// range has `last` only if the steps meet it, and is exact: no value is off by a rounding error.
// INVALID_ARGUMENT says what would be right.
absl::StatusOr<SweepAxis> ParseSweepAxis(const std::string& text);

inline constexpr std::size_t kSweepPointsMax = 1'000'000;

struct SweepPoint {
  std::vector<std::string> values;  // by axis
  std::vector<std::string> over;    // `path=value` by axis
  std::uint64_t repeat = 0;         // from 0; the seed is that of the scenario and this
};

// Every combination `repeat` times; the last axis changes fastest, repetitions faster still.
// INVALID_ARGUMENT for two axes of the same field and for more than kSweepPointsMax points.
absl::StatusOr<std::vector<SweepPoint>> SweepPoints(const std::vector<SweepAxis>& axes,
                                                    std::uint64_t repeat);

// 32 hexadecimal digits that are the same for the same scenario and model: equal keys mean equal
// results. REQUIRES: files are inlined.
std::string SweepKey(const v1::Scenario& scenario);

}  // namespace percs
