#include "client/lib/journalled_run.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "client/lib/fabric_record.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "proto/scenario/commands.h"
#include "proto/scenario/file.h"
#include "proto/scenario/journal_file.h"
#include "proto/window/endpoint_codec.h"

namespace percs {
namespace {

namespace fs = std::filesystem;

bool HasJournal(const std::string& folder) {
  std::error_code error;
  return fs::is_regular_file(folder + "/journal", error);
}

// ` or`-joined folders in this one that have a journal, the first three by name.
std::string JournalsIn(const std::string& folder) {
  constexpr std::size_t kListed = 3;
  std::vector<std::string> found;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (HasJournal(entry->path().string())) found.push_back(entry->path().string());
  }
  std::sort(found.begin(), found.end());
  found.resize(std::min(found.size(), kListed));
  return found.empty() ? "" : fmt::format("; did you mean \"{}\"?", fmt::join(found, "\" or \""));
}

}  // namespace

absl::Status FindJournal(const std::string& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) {
    if (HasJournal(path)) return absl::OkStatus();
    return absl::NotFoundError(
        fmt::format("{}: there is no journal in this folder{}", path, JournalsIn(path)));
  }
  if (fs::exists(path, error)) return absl::OkStatus();
  const auto store = FabricStore::Open();
  const bool is_name =
      store.ok() && CheckFabricName(path).ok() && HasJournal(store->FolderOf(path));
  std::string nearest = is_name ? store->FolderOf(path) : "";
  if (nearest.empty()) {
    nearest = NearestPath(path, [](const std::string& name) {
      std::error_code ignored;
      return fs::is_regular_file(name, ignored) || HasJournal(name);
    });
  }
  return absl::NotFoundError(
      fmt::format("{}: no such file or folder{}", path,
                  nearest.empty() ? "" : fmt::format("; did you mean \"{}\"?", nearest)));
}

absl::StatusOr<JournalledRun> ReadJournalledRun(const std::string& journal, std::uint64_t number,
                                                Disk& disk) {
  const auto contents = ReadJournal(journal, disk);
  if (!contents.ok()) return contents.status();
  JournalledRun run;
  run.cut_off = contents->cut_off;
  for (const v1::JournalRecord& record : contents->records) {
    if (record.has_apply() && (number == 0 || record.run() == number)) run.number = record.run();
  }
  if (run.number == 0) {
    return absl::NotFoundError(
        number == 0 ? fmt::format("{}: this journal contains no run", journal)
                    : fmt::format("{}: this journal contains no run {}", journal, number));
  }
  for (const v1::JournalRecord& record : contents->records) {
    if (record.run() != run.number) continue;
    if (record.has_apply()) {
      run.apply = record.apply();
    } else if (record.has_end()) {
      run.end = record.end();
      run.end_at = record.at();
    } else {
      run.commands.push_back(record);
    }
  }
  const auto scenario = ReadPayload(journal, run.apply.scenario(), disk);
  if (!scenario.ok()) return scenario.status();
  if (!run.scenario.ParseFromString(*scenario))
    return absl::DataLossError("the scenario in the journal is damaged");
  for (v1::JournalRecord& record : run.commands) {
    if (record.has_endpoint()) {
      const auto find = [&](std::uint64_t name) { return ReadPayload(journal, name, disk); };
      if (absl::Status status = FindData(record.mutable_endpoint(), find); !status.ok())
        return status;
    }
    if (record.event_case() != v1::JournalRecord::kLoadRoutes) continue;
    const auto routes = ReadPayload(journal, record.load_routes(), disk);
    if (!routes.ok()) return routes.status();
    if (!record.mutable_routes()->ParseFromString(*routes))
      return absl::DataLossError("route tables in the journal are damaged");
  }
  run.commands = ForReplay(run.commands);
  run.scenario.mutable_run()->set_clock(v1::CLOCK_BATCH);
  return run;
}

}  // namespace percs
