// The page that `percsctl validate --format html` prints: complete in itself, with its drawings.
#pragma once

#include <string>
#include <vector>

#include "emulator/experiments/judge.h"

namespace percs {

struct ValidatedMachine {
  std::string name;
  std::vector<ValidationRow> rows;
};

// Summaries, emulated against published figures, errors of all rows, and the rows. `notes` stand
// below the summaries, one paragraph each.
std::string ValidationPage(const std::vector<ValidatedMachine>& machines,
                           const std::vector<ErrorSummary>& summaries,
                           const std::vector<std::string>& notes);

// How an error and a row's judgement are printed: `+3.2 %`, `-`; `holds`, `misses`, `-`.
std::string ErrorText(const ValidationRow& row);
std::string JudgementText(const ValidationRow& row);

}  // namespace percs
