#include "client/lib/journalled_run.h"

#include "fmt/format.h"
#include "proto/scenario/commands.h"
#include "proto/scenario/journal_file.h"
#include "proto/window/endpoint_codec.h"

namespace percs {

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
