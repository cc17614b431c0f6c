// The part of FabricRun that lets another controller continue where this one stopped
// (docs/protocol.md, "When the controller dies").
//
// Reports of daemons and grants to them are kept as they are. Network management is not: it is
// deterministic, so it repeats its work from the steps and commands that were kept.
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

void FabricRun::Save(v1::SavedRun* saved) {
  SaveRest(saved);
  recovery_.saving = saved->SerializeAsString();
  master_.Save(saved->mutable_master());
  streams_.batches.Save(saved);
}

void FabricRun::SaveRest(v1::SavedRun* saved) const {
  saved->set_number(setup_.number);
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
  for (const std::uint32_t process : ready_) saved->add_ready(process);
  saved->set_hold(hold_);
  if (time_.pause_at()) saved->set_pause_at(*time_.pause_at());
  saved->set_pace(time_.pace().pacing().pace);
  commands_.Save(saved);
  for (std::uint32_t p = 0; p < setup_.daemons(); ++p) *saved->add_pending() = Pending(p);
  manager_log_.Save(saved);
  leases_.Save(saved);
  losses_.Save(saved);
  programs_.Save(saved);
  saved->set_recoveries(recovery_.controllers);
}

bool FabricRun::OnlyWindows() const {
  if (recovery_.touched || !recovery_.rest || !record_.whole() ||
      !manager_log_.new_steps().empty() || master_.other_changes() != recovery_.other_changes)
    return false;
  v1::SavedRun rest;
  SaveRest(&rest);
  return rest.SerializeAsString() == *recovery_.rest;
}

void FabricRun::Kept(bool whole) {
  recovery_.touched = recovery_.span_over = false;
  manager_log_.Kept();
  record_.Clear();
  if (!whole) return;
  recovery_.rest = std::exchange(recovery_.saving, std::nullopt);
  recovery_.other_changes = master_.other_changes();
}

absl::Status FabricRun::Repeat(const v1::SavedStep& step) {
  const absl::Status misfit = absl::DataLossError(fmt::format(
      "run {}: a step in the log of windows does not fit the saved state", setup_.number));
  if (step.has_report()) {
    const std::uint32_t process = step.report().process();
    if (process >= setup_.daemons() || !step.report().message().has_report()) return misfit;
    return TakeReport(process, step.report().message().report());
  }
  if (master_.anyone_running() || master_.in_span() != step.has_continued()) return misfit;
  for (const std::uint32_t process :
       step.has_continued() ? master_.Continue() : master_.Open(step.opened())) {
    if (process == setup_.daemons()) return misfit;  // a step of network management says this
    SendGrant(process);
  }
  return absl::OkStatus();
}

absl::Status FabricRun::Restore(const v1::SavedRun& saved,
                                const std::vector<v1::ManagerStep>& steps,
                                std::vector<v1::JournalRecord> commands) {
  if (absl::Status s = commands_.CheckSaved(saved, commands.size()); !s.ok()) return s;
  if (saved.pending_size() != static_cast<int>(setup_.daemons())) {
    return absl::DataLossError(
        fmt::format("run {}: the saved state is of {} daemons, but the run's request is for {}",
                    setup_.number, saved.pending_size(), setup_.daemons()));
  }
  if (absl::Status status = RepeatManager(saved, steps, commands); !status.ok()) return status;
  if (absl::Status status = master_.Restore(saved.master()); !status.ok()) return status;
  for (std::uint32_t p = 0; p < setup_.daemons(); ++p) {
    if (absl::Status status = RestoreCommands(p, saved.pending(static_cast<int>(p))); !status.ok())
      return status;
  }
  if (absl::Status status = manager_log_.Restore(saved); !status.ok()) return status;
  ready_.insert(saved.ready().begin(), saved.ready().end());
  hold_ = saved.hold();
  if (saved.has_pause_at()) time_.PauseAt(saved.pause_at());
  if (saved.has_pace()) time_.pace().Set(saved.pace(), clock_.Now(), master_.now());
  leases_.Restore(saved, clock_.Now());
  losses_.Restore(saved);
  streams_.batches.Restore(saved);
  programs_.Restore(saved);
  recovery_.controllers = saved.recoveries() + 1;
  queries_.ContinueAfter(recovery_.controllers);
  recovery_.phase = saved.phase();
  if (!commands.empty()) time_.NotBefore(commands.back().at());
  commands_.Restore(saved, std::move(commands));
  for (const v1::JournalRecord& record : commands_.retaken()) {
    if (record.lose().has_process()) losses_.Journalled(record.lose());
  }
  return absl::OkStatus();
}

absl::Status FabricRun::RepeatManager(const v1::SavedRun& saved,
                                      const std::vector<v1::ManagerStep>& steps,
                                      const std::vector<v1::JournalRecord>& commands) {
  std::uint64_t taken = 0;
  // A command that was refused then is refused now.
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
      streams_.cables.Note(done);
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
  for (std::uint32_t p = 0; p < setup_.daemons(); ++p) manager_->outbox(p).Clear();
  return absl::OkStatus();
}

absl::Status FabricRun::RestoreCommands(std::uint32_t p, const v1::WindowGrant& pending) {
  if (!pending.management().empty()) {
    absl::Status status = DecodeManagement(pending.management(), &manager_->outbox(p));
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
  spdlog::warn("run {}: recovered at {} of virtual time, {} commands to apply again", setup_.number,
               FormatTime(master_.now()), commands_.retaken().size());
  if (recovery_.phase == v1::SavedRun::PHASE_CONFIGURING) return;
  time_.Start(clock_.Now());
  // In a paced run commands take effect between windows, in the order of their times.
  time_.pace().Resume(clock_.Now(), std::max(master_.now(), time_.not_before()));
  phase_ = Phase::kRunning;
  EndLeases();
  if (recovery_.phase == v1::SavedRun::PHASE_COLLECTING) return Collect(v1::Collect::WHAT_RESULTS);
  if (recovery_.phase == v1::SavedRun::PHASE_DEADLOCKED)
    return Collect(v1::Collect::WHAT_WAIT_EDGES);
  for (const Loss& loss : losses_.Take()) {
    if (!commands_.RetakesLossOf(loss.saved.process())) BeginLoss(loss.saved);
  }
  LeaveOutRetaken();
  FollowHold();
  Continue();
}

// What was saved can be older than the windows before a command. Its effect on network management
// and on hubs would not be the same before these.
void FabricRun::Retake() {
  while (going_on() && !busy() && commands_.any_retaken() &&
         commands_.next_retaken() <= master_.next()) {
    const v1::JournalRecord record = commands_.TakeRetaken();
    std::list<Command> one;
    one.push_back(Again(record, /*journalled=*/true));
    recovery_.touched = true;
    Apply(std::move(one), record.at());
    LeaveOutRetaken();
    const v1::RejoinedDaemon& back = record.rejoin();
    if (back.has_process() && !IsLost(back.process()) &&
        port_->Describe(back.process()).incarnation() != back.incarnation())
      Declare(back.process(), back.name(), back.incarnation(), "it is gone");
  }
}

void FabricRun::LeaveOutRetaken() {
  for (const std::uint32_t process : commands_.PlacesToLose()) {
    if (!IsLost(process)) LeaveOut(process);
  }
}

absl::Status FabricRun::Retaking() const {
  if (!commands_.any_retaken()) return absl::OkStatus();
  return absl::UnavailableError(fmt::format(
      "run {} continues after another controller: virtual time is {}, and {} commands up to {} "
      "take effect again first",
      setup_.number, FormatTime(master_.now()), commands_.retaken().size(),
      FormatTime(commands_.retaken().back().at())));
}

}  // namespace percs
