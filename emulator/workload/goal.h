// GOAL text (LogGOPSim, ATLAHS): application traces as per-rank graphs of calc, send and recv.
//
//     num_ranks N
//     rank R {
//     label: calc NANOSECONDS [cpu C] [nic N]
//     label: send BYTESb to RANK [tag T] [cpu C] [nic N]
//     label: recv BYTESb from RANK [tag T] [cpu C] [nic N]
//     label requires other        (start after other has finished)
//     label irequires other       (start after other has started)
//     }
//
// Labels belong to their rank, are optional and may be used before they are defined; rank blocks
// come in any order; a statement ends with its line or with the closing brace. // and /* */
// comment. Tags, cpus and nics default to 0. Wildcard receives (-1) are refused: their matching
// would depend on the network.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"
#include "emulator/scenario/scenario.h"

namespace percs {

// Limits, so that every duration and count fits its type and bad input cannot ask for the memory.
inline constexpr std::uint32_t kGoalRanksMax = 1u << 20;
inline constexpr std::uint32_t kGoalCpuMax = 4095;                      // highest cpu or nic
inline constexpr std::uint64_t kGoalBytesMax = std::uint64_t{1} << 40;  // of one message
inline constexpr std::uint64_t kGoalCalcMax = 1'000'000'000'000'000;    // ns of one calc: 11 days
inline constexpr std::uint64_t kGoalStatementsMax =
    8'388'608;  // operations and dependencies of all

// Parses a whole trace. INVALID_ARGUMENT names line and column, what is wrong and what would be
// right; `name` is the file's name in messages. A trace that is returned can be replayed: every
// rank is there, dependencies have no cycle, and every (source, destination, tag) has as many sends
// as receives.
absl::StatusOr<GoalTrace> ParseGoal(std::string_view text, std::string_view name,
                                    std::uint64_t statements_max = kGoalStatementsMax);

}  // namespace percs
