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
    if (command.journalled) continue;
    records.push_back(command.record);
    records.back().set_run(run_);
    records.back().set_at(at);
  }
  absl::Status status = records.empty() ? absl::OkStatus() : journal_(records);
  if (status.ok()) recorded_ += commands.size();
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

std::set<std::uint32_t> RunCommands::PlacesToLose() const {
  std::set<std::uint32_t> lost, rejoined;
  for (const v1::JournalRecord& record : retaken_) {
    if (record.has_rejoin()) {
      rejoined.insert(record.rejoin().process());
    } else if (record.lose().has_process() && !rejoined.contains(record.lose().process())) {
      lost.insert(record.lose().process());
    }
  }
  return lost;
}

v1::JournalRecord RunCommands::TakeRetaken() {
  v1::JournalRecord record = std::move(retaken_.front());
  retaken_.pop_front();
  if (!replay_.empty() && WithoutRun(replay_.front()) == WithoutRun(record)) replay_.pop_front();
  return record;
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
  retaken_.assign(journal.begin() + static_cast<std::ptrdiff_t>(recorded_), journal.end());
}

}  // namespace percs
