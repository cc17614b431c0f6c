// Every published figure of the dual-Cell blade beside what the emulator measures on a QS20, by
// programs that run on it. docs/cell.md says which parameters were calibrated on which rows.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "emulator/cell/blade_parameters.h"
#include "emulator/experiments/row.h"

namespace percs::cell {

// Calls per measurement: the loop settles within the first few, so more would not change a digit
// shown.
inline constexpr int kValidationIterations = 400;

absl::StatusOr<std::vector<ValidationRow>> ValidateCell();
// On a blade with other parameters, to see which rows they move. `iterations` is at least 10: long
// messages take a tenth of them.
absl::StatusOr<std::vector<ValidationRow>> ValidateCell(const BladeParameters& parameters,
                                                        int iterations);

}  // namespace percs::cell
