#include "daemon/controller/run/manager_log.h"

#include <utility>

#include "daemon/link/codec.h"
#include "proto/process/bytes_of.h"

namespace percs {

absl::Status DecodeManagement(const std::string& bytes, Outbox* outbox) {
  OutboxDecoder decoder(0);
  return decoder.Decode(BytesOf(bytes), outbox);
}

absl::Status ManagerLog::Receive(const std::string& bytes) {
  if (keeps_) inbox_bytes_.push_back(bytes);
  return DecodeManagement(bytes, &inbox_);
}

Outbox ManagerLog::TakeInbox() {
  Outbox inbox = std::move(inbox_);
  inbox_.Clear();
  return inbox;
}

v1::ManagerStep& ManagerLog::AddStep(std::uint64_t commands) {
  v1::ManagerStep& step = new_steps_.emplace_back();
  step.set_commands(commands);
  ++steps_;
  return step;
}

void ManagerLog::RanWindow(std::uint64_t commands, Time window) {
  if (!keeps_) return;
  v1::ManagerStep& step = AddStep(commands);
  step.set_window(window);
  for (std::string& bytes : std::exchange(inbox_bytes_, {})) step.add_inbox(std::move(bytes));
}

void ManagerLog::RanFaults(std::uint64_t commands, Time end) {
  if (keeps_) AddStep(commands).set_faults_until(end);
}

void ManagerLog::Save(v1::SavedRun* saved) const {
  for (const std::string& bytes : inbox_bytes_) saved->add_manager_inbox(bytes);
  saved->set_steps(steps_);
}

absl::Status ManagerLog::Restore(const v1::SavedRun& saved) {
  for (const std::string& bytes : saved.manager_inbox()) {
    if (absl::Status status = Receive(bytes); !status.ok()) return status;
  }
  steps_ = saved.steps();
  return absl::OkStatus();
}

}  // namespace percs
