#include "daemon/controller/run/finished_runs.h"

#include <string>
#include <utility>

#include "fmt/format.h"

namespace percs {

void FinishedRuns::Add(std::uint64_t run, absl::StatusOr<v1::GetResultReply> reply) {
  finished_.push_back({run, std::move(reply)});
  if (finished_.size() > kKept) finished_.pop_front();
}

absl::StatusOr<v1::GetResultReply> FinishedRuns::Get(std::uint64_t run) const {
  if (finished_.empty()) {
    return absl::NotFoundError(run == 0
                                   ? std::string("no run has ended yet")
                                   : fmt::format("run {} is unknown; no run has ended yet", run));
  }
  if (run == 0) return finished_.back().reply;
  for (const Finished& finished : finished_) {
    if (finished.run == run) return finished.reply;
  }
  return absl::NotFoundError(
      fmt::format("run {} is unknown; the last run that ended is {}, and the results of the last "
                  "{} are kept",
                  run, finished_.back().run, kKept));
}

}  // namespace percs
