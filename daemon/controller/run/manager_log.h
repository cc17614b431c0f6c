// Input and steps of network management, so that a controller that takes over can repeat them
// (docs/protocol.md, "When the controller dies").
//
// THREAD: calls do not overlap.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "emulator/base/time.h"
#include "emulator/wire/outbox.h"
#include "percs/v1/state.pb.h"

namespace percs {

// An outbox of network management, which carries no flits. INVALID_ARGUMENT if it cannot be read.
absl::Status DecodeManagement(const std::string& bytes, Outbox* outbox);

class ManagerLog {
 public:
  // Whether steps are kept.
  explicit ManagerLog(bool keeps) : keeps_(keeps) {}

  // An outbox for network management has come. INVALID_ARGUMENT if it cannot be read.
  absl::Status Receive(const std::string& bytes);
  // The outboxes since the last call, which it applies now.
  Outbox TakeInbox();
  // After this many commands it ran up to `window`, with what was received, or faults did what they
  // do before `end`.
  void RanWindow(std::uint64_t commands, Time window);
  void RanFaults(std::uint64_t commands, Time end);

  // Number of all steps, and those since Kept().
  std::uint64_t steps() const { return steps_; }
  const std::vector<v1::ManagerStep>& new_steps() const { return new_steps_; }
  void Kept() { new_steps_.clear(); }

  void Save(v1::SavedRun* saved) const;
  absl::Status Restore(const v1::SavedRun& saved);

 private:
  v1::ManagerStep& AddStep(std::uint64_t commands);

  const bool keeps_;
  Outbox inbox_;
  std::vector<std::string> inbox_bytes_;  // the same, as it came
  std::uint64_t steps_ = 0;
  std::vector<v1::ManagerStep> new_steps_;
};

}  // namespace percs
