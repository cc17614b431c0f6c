// Every published figure of paper 003 beside what the emulator measures, by the paper's own loops.
// docs/collectives.md says which parameters were calibrated on which rows.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "emulator/validation/row.h"

namespace percs {

// Rows whose id begins with `only` (empty: all); cells of the tables take minutes.
absl::StatusOr<std::vector<ValidationRow>> ValidateP7ih(const std::string& only = "");

}  // namespace percs
