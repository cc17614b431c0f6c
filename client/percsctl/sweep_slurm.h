// The points of a sweep as a job array of Slurm: each task of it is a `percsctl sweep --part I/N`
// of the same grid and folder.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace percs {

// A part of the points, for one task: those whose number is `index` modulo `count`.
struct SweepPart {
  std::size_t index = 0, count = 1;
};
// "2/8". INVALID_ARGUMENT.
absl::StatusOr<SweepPart> ParseSweepPart(const std::string& text);

// The job of the array that was submitted for this folder by this user and has not ended; "" if
// there is none, or no Slurm. UNAVAILABLE if Slurm does not answer.
absl::StatusOr<std::string> SweepArrayOf(const std::string& folder);

// Submits `tasks` tasks of `threads` threads, each of which runs `command --part I/N`; returns the
// job. Logs are in `folder`/slurm. UNAVAILABLE with what sbatch says.
absl::StatusOr<std::string> SubmitSweepArray(const std::string& folder,
                                             const std::vector<std::string>& command,
                                             std::size_t tasks, int threads);

// The log of a task of the array.
std::string SweepLog(const std::string& folder, const std::string& job, std::size_t task);

}  // namespace percs
