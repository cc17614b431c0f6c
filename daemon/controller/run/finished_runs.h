// Results of the last runs that ended.
//
// THREAD: calls do not overlap.
#pragma once

#include <cstdint>
#include <deque>

#include "absl/status/statusor.h"
#include "percs/v1/control.pb.h"

namespace percs {

class FinishedRuns {
 public:
  static constexpr std::size_t kKept = 16;

  // Numbers ascend.
  void Add(std::uint64_t run, absl::StatusOr<v1::GetResultReply> reply);
  // 0: of the last one. The error with which it ended, or NOT_FOUND.
  absl::StatusOr<v1::GetResultReply> Get(std::uint64_t run) const;

 private:
  struct Finished {
    std::uint64_t run = 0;
    absl::StatusOr<v1::GetResultReply> reply;
  };
  std::deque<Finished> finished_;
};

}  // namespace percs
