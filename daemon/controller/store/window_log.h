// The log of windows (`windows` in a controller's state directory): what reports of daemons have
// changed since the state in `state.db` was saved. In most windows nothing else happens, and to
// append it costs a fraction of saving the state again.
//
// Records lie as those of the journal do (record_frame.h). Each names the state that it follows,
// and the file is written from its beginning again after each state; so records of an earlier state
// may follow those that count, and end them. It is never synced: what survives a failure of the
// machine is a state and, if they were written, some of the windows after it, in order.
//
// THREAD: one at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "percs/v1/state.pb.h"
#include "proto/scenario/disk.h"

namespace percs {

class WindowLog {
 public:
  // The disk lives as long as this.
  explicit WindowLog(Disk* disk) : disk_(disk) {}

  // `opened`: a number that was never used before with this folder, at least 1. UNAVAILABLE if the
  // file cannot be written to.
  absl::Status Open(const std::string& folder, std::uint32_t opened);
  void Close() { file_.reset(); }

  // What follows this state, in order; nothing follows 0. REQUIRES: open, and no state was saved
  // since.
  absl::StatusOr<std::vector<v1::SavedSteps>> Read(std::uint64_t state);
  // The name of the state that is about to be saved.
  std::uint64_t NextState() { return next_ = first_ + ++states_; }
  // A commit has ended. If it succeeded, the log is empty. Without a NextState before it, nothing
  // can be appended up to the next one.
  void Committed(bool ok);
  // False if there is no such state, if the log is as long as it may be or if it could not be
  // written: save the state. Sets `after`.
  bool Append(v1::SavedSteps* steps);
  // Nothing follows the state that was saved last.
  bool empty() const { return size_ == 0; }

 private:
  Disk* disk_;
  std::string path_;
  std::unique_ptr<Disk::File> file_;
  std::uint64_t first_ = 0, states_ = 0;
  std::uint64_t next_ = 0, state_ = 0;  // about to be saved, and of the last commit; 0: none
  std::uint64_t size_ = 0;              // of what follows it
  std::string bytes_;
};

}  // namespace percs
