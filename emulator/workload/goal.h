// GOAL text (LogGOPSim, ATLAHS): application traces as per-rank graphs of calc, send and recv.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "emulator/sim/scenario.h"

namespace percs {

// Parses a whole trace. INVALID_ARGUMENT names line and column, what is wrong and what would be right;
// `name` is the file's name in messages.
absl::StatusOr<GoalTrace> ParseGoal(std::string_view text, std::string_view name);

}  // namespace percs
