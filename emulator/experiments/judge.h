// How rows are judged, the same for every machine: one tolerance for each kind of row, and the
// statistics of the errors. docs/fidelity.md has the rules.
#pragma once

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "emulator/experiments/row.h"

namespace percs {

inline constexpr double kCalibratedTolerance = 0.05, kPredictedTolerance = 0.15;

// Relative distance of the emulated value from the published one, with its sign; from the nearer
// end of a range, and 0 inside it. NaN where nothing is published.
double RelativeError(const ValidationRow& row);

// Calibrated and predicted rows whose published figure is known.
bool IsJudged(const ValidationRow& row);
// Of a judged row: whether it is within the tolerance of its kind.
bool Holds(const ValidationRow& row);

// Of some rows. Errors are magnitudes; those of ranges and bounds count in `worst` alone, because
// most of a range's emulated values have no error at all and would lower the others.
struct ErrorSummary {
  std::string family;  // machine, or "all"
  std::string kind;    // of the rows, or "judged" for calibrated and predicted ones
  int rows = 0;
  int judged = 0, held = 0;
  int figures = 0;  // judged rows with one published value
  double median = 0, percentile_90 = 0, worst = 0;
  std::string worst_id;
};

// One summary for every kind of row that there is, in the order of the kinds, then one of all
// judged rows.
std::vector<ErrorSummary> SummarizeErrors(const std::string& family,
                                          absl::Span<const ValidationRow> rows);

// The `share`-th of sorted values, linear between neighbours; 0 if there are none.
double Percentile(absl::Span<const double> sorted, double share);

}  // namespace percs
