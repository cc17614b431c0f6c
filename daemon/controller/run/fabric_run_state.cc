// The part of FabricRun that lets another controller take it up where this one left it
// (docs/protocol.md, "When the controller dies").
//
// What daemons have said and what they were granted is kept as it stands. Network management is
// not: it is deterministic, so it does again what it did, from the steps and the commands that
// were kept.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "daemon/controller/run/fabric_run.h"
#include "fmt/format.h"
#include "proto/scenario/commands.h"
#include "proto/scenario/faults.h"
#include "spdlog/spdlog.h"

namespace percs {
namespace {

std::string WithoutRun(v1::JournalRecord record) {
  record.clear_run();
  return record.SerializeAsString();
}

}  // namespace

void FabricRun::Save(v1::SavedRun* saved) const {
  saved->set_number(number_);
  switch (phase_) {
    case Phase::kConfiguring:
      saved->set_phase(v1::SavedRun::PHASE_CONFIGURING);
      break;
    case Phase::kCollecting:
      saved->set_phase(v1::SavedRun::PHASE_COLLECTING);
      break;
    case Phase::kDeadlocked:
      saved->set_phase(v1::SavedRun::PHASE_DEADLOCKED);
      break;
    default:
      saved->set_phase(v1::SavedRun::PHASE_RUNNING);
  }
  master_.Save(saved->mutable_master());
  for (const std::uint32_t process : ready_) saved->add_ready(process);
  saved->set_hold(hold_);
  if (pause_at_) saved->set_pause_at(*pause_at_);
  saved->set_commands(commands_taken_);
  saved->set_replay_left(replay_.size());
  for (std::uint32_t p = 0; p < daemons_; ++p) *saved->add_pending() = Pending(p);
  manager_log_.Save(saved);
  leases_.Save(saved);
  for (const Loss& loss : losses_) *saved->add_losses() = loss.saved;
  batches_.Save(saved);
  programs_.Save(saved);
  saved->set_losses_count(losses_count_);
  saved->set_recoveries(recoveries_);
}

absl::Status FabricRun::Restore(const v1::SavedRun& saved,
                                const std::vector<v1::ManagerStep>& steps,
                                std::vector<v1::JournalRecord> commands) {
  if (commands.size() < saved.commands()) {
    return absl::DataLossError(
        fmt::format("run {} had applied {} commands, but the journal has only {}: the journal and "
                    "the saved state are not from the same state directory",
                    number_, saved.commands(), commands.size()));
  }
  if (saved.pending_size() != static_cast<int>(daemons_) || saved.replay_left() > replay_.size()) {
    return absl::DataLossError(
        fmt::format("run {}: the saved state does not match the run's request", number_));
  }
  if (absl::Status status = RepeatManager(saved, steps, commands); !status.ok()) return status;
  if (absl::Status status = master_.Restore(saved.master()); !status.ok()) return status;
  for (std::uint32_t p = 0; p < daemons_; ++p) {
    if (absl::Status status = RestoreCommands(p, saved.pending(static_cast<int>(p))); !status.ok())
      return status;
  }
  if (absl::Status status = manager_log_.Restore(saved); !status.ok()) return status;
  ready_.insert(saved.ready().begin(), saved.ready().end());
  hold_ = saved.hold();
  if (saved.has_pause_at()) pause_at_ = saved.pause_at();
  commands_taken_ = saved.commands();
  replay_.erase(replay_.begin(), replay_.end() - static_cast<std::ptrdiff_t>(saved.replay_left()));
  leases_.Restore(saved, clock_.Now());
  for (const v1::SavedLoss& loss : saved.losses()) losses_.emplace_back().saved = loss;
  batches_.Restore(saved);
  programs_.Restore(saved);
  losses_count_ = saved.losses_count();
  recoveries_ = saved.recoveries() + 1;
  queries_.ContinueAfter(recoveries_);
  saved_phase_ = saved.phase();
  if (!commands.empty()) last_command_at_ = commands.back().at();
  commands.erase(commands.begin(), commands.begin() + static_cast<std::ptrdiff_t>(commands_taken_));
  retake_ = std::move(commands);
  return absl::OkStatus();
}

absl::Status FabricRun::RepeatManager(const v1::SavedRun& saved,
                                      const std::vector<v1::ManagerStep>& steps,
                                      const std::vector<v1::JournalRecord>& commands) {
  std::uint64_t taken = 0;
  // What was refused then is refused now.
  const auto repeat_until = [&](std::uint64_t end) {
    for (; taken < end; ++taken) {
      const CommandRow row = RowOf(commands[taken].event_case());
      if (row.repeat) (this->*row.repeat)(commands[taken]);
    }
  };
  for (const v1::ManagerStep& step : steps) {
    if (step.commands() > saved.commands())
      return absl::DataLossError(
          "the saved state has a network management step that this version does not know");
    repeat_until(step.commands());
    if (step.has_faults_until()) {
      std::vector<FaultAction> done;
      manager_->faults()->Run(step.faults_until(), &done);
      cables_.Note(done);
      continue;
    }
    Outbox inbox;
    for (const std::string& bytes : step.inbox()) {
      if (absl::Status status = DecodeManagement(bytes, &inbox); !status.ok()) return status;
    }
    if (absl::Status status = manager_->Accept(std::move(inbox)); !status.ok()) return status;
    manager_->RunWindow(step.window());
  }
  repeat_until(saved.commands());
  for (std::uint32_t p = 0; p < daemons_; ++p) manager_->outbox(static_cast<int>(p)).Clear();
  return absl::OkStatus();
}

absl::Status FabricRun::RestoreCommands(std::uint32_t p, const v1::WindowGrant& pending) {
  if (!pending.management().empty()) {
    absl::Status status =
        DecodeManagement(pending.management(), &manager_->outbox(static_cast<int>(p)));
    if (!status.ok()) return status;
  }
  for (const v1::FaultActionCommand& message : pending.fault_actions()) {
    if (const auto action = ActionFromProto(message); !action.ok()) return action.status();
  }
  pending_[p] = pending;
  pending_[p].clear_management();
  return absl::OkStatus();
}

void FabricRun::TakeUp() {
  spdlog::warn("run {}: recovered at {} of virtual time, {} commands to apply again", number_,
               FormatTime(master_.now()), retake_.size());
  if (saved_phase_ == v1::SavedRun::PHASE_CONFIGURING) return;
  has_started_ = true;
  started_ = clock_.Now();
  pace_.Start(started_, master_.now(), master_.windows());
  // At a pace commands take effect between windows, and none may come before one that has.
  pace_.Resume(started_, std::max(master_.now(), last_command_at_));
  phase_ = Phase::kRunning;
  EndLeases();
  if (saved_phase_ == v1::SavedRun::PHASE_COLLECTING) return Collect(v1::Collect::WHAT_RESULTS);
  if (saved_phase_ == v1::SavedRun::PHASE_DEADLOCKED) return Collect(v1::Collect::WHAT_WAIT_EDGES);
  const auto journalled = [this](const Loss& loss) {
    return std::any_of(retake_.begin(), retake_.end(), [&](const v1::JournalRecord& record) {
      return record.has_lose() && record.lose().process() == loss.saved.process();
    });
  };
  for (const Loss& loss : std::exchange(losses_, {})) {
    if (!journalled(loss)) BeginLoss(loss.saved);
  }
  Retake();
  FollowHold();
  Step();
}

void FabricRun::Retake() {
  retaking_ = true;
  for (const v1::JournalRecord& record : std::exchange(retake_, {})) {
    if (!replay_.empty() && WithoutRun(replay_.front()) == WithoutRun(record)) replay_.pop_front();
    if (record.has_lose() && record.lose().has_process()) {
      const std::uint32_t process = record.lose().process();
      retaken_losses_[process] = record.lose().incarnation();
      if (!master_.lost(static_cast<int>(process))) LeaveOut(process);
    }
    Submit(record);
    TakeCommands(record.at());
  }
  retaking_ = false;
}

}  // namespace percs
