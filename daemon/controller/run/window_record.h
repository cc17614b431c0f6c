// What has happened in a run since its state was saved, if that is no more than reports of daemons
// and the windows that were opened after them. A controller that takes over repeats it.
//
// THREAD: calls do not overlap.
#pragma once

#include <cstdint>

#include "emulator/base/time.h"
#include "percs/v1/state.pb.h"

namespace percs {

class WindowRecord {
 public:
  // Whether anything is kept.
  explicit WindowRecord(bool keeps) : keeps_(keeps) {}

  // A daemon has reported; null if nothing is kept. The caller puts the message there before
  // Clear.
  v1::DaemonMessage* Reported(std::uint32_t process) {
    if (!keeps_) return nullptr;
    ++reports_;
    v1::SavedReport* report = steps_.add_steps()->mutable_report();
    report->set_process(process);
    return report->mutable_message();
  }
  // The first window of a span up to `end` was opened, or the next one.
  void Opened(Time end) {
    if (keeps_) steps_.add_steps()->set_opened(end);
  }
  void Continued() {
    if (keeps_) steps_.add_steps()->set_continued(true);
  }
  // A daemon was granted its part of it. `more`: and was given what the windows do not say.
  void Granted(bool more) {
    ++grants_;
    whole_ = whole_ && !more;
  }

  // Whether the steps say everything.
  bool whole() const { return whole_; }
  std::uint64_t reports() const { return reports_; }
  std::uint64_t grants() const { return grants_; }
  v1::SavedSteps* steps() { return &steps_; }
  void Clear() {
    steps_.Clear();
    reports_ = grants_ = 0;
    whole_ = true;
  }

 private:
  const bool keeps_;
  v1::SavedSteps steps_;
  std::uint64_t reports_ = 0, grants_ = 0;
  bool whole_ = true;
};

}  // namespace percs
