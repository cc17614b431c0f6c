#include "client/mpi/job_journal.h"

#include <fmt/format.h>

#include <utility>

#include "proto/process/version.h"
#include "proto/scenario/build.h"
#include "proto/scenario/commands.h"

namespace percs::mpi {
namespace {

constexpr std::uint64_t kJournalBytesMax = std::uint64_t{64} << 30;
constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

}  // namespace

absl::StatusOr<std::unique_ptr<JobJournal>> JobJournal::Open(const std::string& folder,
                                                             const v1::Scenario& machine,
                                                             const v1::MpiJob& program) {
  std::unique_ptr<JobJournal> journal(
      new JobJournal(static_cast<std::size_t>(program.hubs_size())));
  JournalFile& file = journal->file_;
  if (absl::Status status = file.Open(folder, kJournalBytesMax); !status.ok()) return status;
  const auto scenario = file.Store(machine.SerializeAsString());
  if (!scenario.ok()) return scenario.status();
  journal->run_ = file.last_run() + 1;
  v1::JournalRecord record;
  record.set_run(journal->run_);
  *record.mutable_apply()->mutable_versions() = OurVersions();
  record.mutable_apply()->set_scenario(*scenario);
  *record.mutable_apply()->mutable_mpi() = program;
  if (absl::Status status = file.Append({record}); !status.ok()) return status;
  return journal;
}

absl::Status JobJournal::Add(std::uint32_t rank, const Record& record, const Bytes& bytes) {
  log_.Add(rank, record, bytes);
  return log_.size() < kPieceBytes ? absl::OkStatus() : Flush();
}

absl::Status JobJournal::Flush() { return AddPiece(log_.Take()); }

absl::Status JobJournal::AddPiece(std::string piece) {
  v1::JournalRecord record;
  record.set_run(run_);
  bytes_ += piece.size();
  record.set_mpi_calls(std::move(piece));
  return file_.Append({record});
}

absl::Status JobJournal::Add(const v1::JournalRecord& command) {
  v1::JournalRecord record = command;
  record.set_run(run_);
  return file_.Append({record});
}

absl::Status JobJournal::End(const JobResult& result) {
  if (absl::Status status = Flush(); !status.ok()) return status;
  v1::JournalRecord record;
  record.set_run(run_);
  record.set_at(result.virtual_time);
  if (result.failure.empty()) record.mutable_end()->set_digest(result.digest.ToString());
  record.mutable_end()->set_error(result.failure);
  return file_.Append({record});
}

absl::StatusOr<Scenario> MachineOf(const v1::Scenario& message) {
  auto machine = BuildScenario(message, "");
  if (machine.ok()) machine->stop_at = 0;
  return machine;
}

absl::StatusOr<JobResult> ReplayJob(const v1::Scenario& machine, const v1::MpiJob& program,
                                    const std::vector<v1::JournalRecord>& records) {
  auto built = MachineOf(machine);
  if (!built.ok()) return built.status();
  JobOptions options;
  options.machine = *std::move(built);
  options.compute_scale = program.compute_scale();
  options.collective_bytes = program.collective_bytes();
  if (program.windows_size() != program.hubs_size())
    return absl::DataLossError("the places of ranks in the journal are damaged");
  for (int r = 0; r < program.hubs_size(); ++r)
    options.places.push_back({program.hubs(r), static_cast<WindowId>(program.windows(r))});
  std::vector<std::string> parts;
  JobReplay replay;
  for (const v1::JournalRecord& record : records) {
    if (record.has_mpi_calls()) {
      parts.push_back(record.mpi_calls());
    } else {
      replay.commands.push_back({record.at(), [&record](Fabric& fabric, Time at) {
                                   return ActOnFabric(record, fabric, at);
                                 }});
    }
  }
  auto calls = ReadCalls(options.places.size(), parts);
  if (!calls.ok()) return calls.status();
  replay.calls = *std::move(calls);
  return Job::Replay(std::move(options), std::move(replay));
}

}  // namespace percs::mpi
