#include "daemon/controller/run/run_commands.h"

#include <algorithm>
#include <string>
#include <utility>

#include "fmt/format.h"

namespace percs {
namespace {

std::string WithoutRun(v1::JournalRecord record) {
  record.clear_run();
  return record.SerializeAsString();
}

}  // namespace

std::list<RunCommands::Command> RunCommands::TakeAsked() {
  std::list<Command> asked;
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    const auto command = it++;
    if (!command->record.has_rejoin()) asked.splice(asked.end(), waiting_, command);
  }
  return asked;
}

void RunCommands::ForgetRejoin(std::uint32_t process) {
  waiting_.remove_if([process](const Command& command) {
    return command.record.has_rejoin() && command.record.rejoin().process() == process;
  });
}

absl::Status RunCommands::Record(const std::list<Command>& commands, Time at) {
  if (!journal_) return absl::OkStatus();
  std::vector<v1::JournalRecord> records;
  for (const Command& command : commands) {
    records.push_back(command.record);
    records.back().set_run(run_);
    records.back().set_at(at);
  }
  absl::Status status = retaking_ ? absl::OkStatus() : journal_(records);
  if (status.ok()) recorded_ += records.size();
  return status;
}

v1::JournalRecord RunCommands::TakeReplay() {
  v1::JournalRecord record = std::move(replay_.front());
  replay_.pop_front();
  return record;
}

bool RunCommands::RetakesLossOf(std::uint32_t process) const {
  return std::any_of(retaken_.begin(), retaken_.end(), [&](const v1::JournalRecord& record) {
    return record.has_lose() && record.lose().process() == process;
  });
}

std::vector<v1::JournalRecord> RunCommands::BeginRetake() {
  retaking_ = true;
  return std::exchange(retaken_, {});
}

void RunCommands::SkipInReplay(const v1::JournalRecord& retaken) {
  if (!replay_.empty() && WithoutRun(replay_.front()) == WithoutRun(retaken)) replay_.pop_front();
}

void RunCommands::Save(v1::SavedRun* saved) const {
  saved->set_commands(recorded_);
  saved->set_replay_left(replay_.size());
}

absl::Status RunCommands::CheckSaved(const v1::SavedRun& saved, std::size_t journalled) const {
  if (journalled < saved.commands()) {
    return absl::DataLossError(
        fmt::format("run {} had applied {} commands, but the journal has only {}: the journal and "
                    "the saved state are not from the same state directory",
                    run_, saved.commands(), journalled));
  }
  if (saved.replay_left() <= replay_.size()) return absl::OkStatus();
  return absl::DataLossError(
      fmt::format("run {}: the saved state has {} commands left to replay, but the run's request "
                  "has {}",
                  run_, saved.replay_left(), replay_.size()));
}

void RunCommands::Restore(const v1::SavedRun& saved, std::vector<v1::JournalRecord> journal) {
  recorded_ = saved.commands();
  replay_.erase(replay_.begin(), replay_.end() - static_cast<std::ptrdiff_t>(saved.replay_left()));
  journal.erase(journal.begin(), journal.begin() + static_cast<std::ptrdiff_t>(recorded_));
  retaken_ = std::move(journal);
}

}  // namespace percs
