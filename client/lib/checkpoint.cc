#include "client/lib/checkpoint.h"

#include <filesystem>

#include "fmt/format.h"
#include "proto/scenario/journal_file.h"

namespace percs {
namespace {

constexpr std::uint64_t kSizeMax = std::uint64_t{1} << 40;

}  // namespace

absl::Status WriteCheckpoint(const std::string& folder, const Checkpoint& checkpoint) {
  std::error_code error;
  if (std::filesystem::exists(folder, error) && !std::filesystem::is_empty(folder, error)) {
    return absl::AlreadyExistsError(
        fmt::format("{} exists already; a checkpoint needs a new folder", folder));
  }
  JournalFile file;
  if (absl::Status status = file.Open(folder, kSizeMax); !status.ok()) return status;
  const auto scenario = file.Store(checkpoint.scenario.SerializeAsString());
  if (!scenario.ok()) return scenario.status();
  std::vector<v1::JournalRecord> records(1);
  records[0].set_run(1);
  *records[0].mutable_apply()->mutable_versions() = checkpoint.versions;
  records[0].mutable_apply()->set_scenario(*scenario);
  for (const v1::JournalRecord& command : checkpoint.commands) {
    records.push_back(command);
    records.back().set_run(1);
  }
  v1::JournalRecord& end = records.emplace_back();
  end.set_run(1);
  end.set_at(checkpoint.at);
  end.mutable_end()->set_digest(checkpoint.digest);
  end.mutable_end()->set_error(kCheckpointMark);
  return file.Append(records);
}

absl::StatusOr<Checkpoint> ReadCheckpoint(const std::string& folder) {
  auto run = ReadJournalledRun(folder, 0);
  if (!run.ok()) return run.status();
  if (!run->end || run->end->error() != kCheckpointMark) {
    return absl::DataLossError(
        fmt::format("{} is not a complete checkpoint: {}", folder,
                    run->end ? "it is the journal of a run that has ended" : "its end is missing"));
  }
  return Checkpoint{std::move(run->scenario), std::move(run->commands), run->apply.versions(),
                    run->end_at, run->end->digest()};
}

}  // namespace percs
