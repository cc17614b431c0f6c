// Figures from outside, for a blind check: somebody who has published figures that the emulator was
// not given writes them into a table, and the rows that they belong to are judged against them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "emulator/experiments/row.h"

namespace percs {

struct WithheldFigure {
  int line = 0;            // of the table, from 1
  std::string id;          // of a row, or of the figure in another list
  std::string conditions;  // behind the quantity, if the table has one
  std::string unit;        // empty: not said
  PublishedFigure value;
};

// Comma-separated values as RFC 4180 has them. The first line names the columns: `id` and `value`,
// and optionally `conditions`, `quantity`, `unit`; others are ignored. A value is a number, a range
// `5-20`, or a bound `>1`, `>=1`, `<4`, `<=4`. INVALID_ARGUMENT names the line and what is wrong.
absl::StatusOr<std::vector<WithheldFigure>> ReadWithheld(std::string_view csv);

struct WithheldMatch {
  std::vector<ValidationRow> rows;     // predicted; their published figures are those from outside
  std::vector<std::string> unmatched;  // one sentence for each figure without a row
};

// A figure belongs to the row with its id. If no row has it, it belongs to the row without a
// published figure whose numbers (sizes, counts) all stand in the figure's conditions and that
// shares more words with them than any other such row. A row whose numbers contradict the
// conditions, or whose unit is another one, is refused.
WithheldMatch MatchWithheld(const std::vector<ValidationRow>& rows,
                            const std::vector<WithheldFigure>& figures);

}  // namespace percs
