// The journal of an MPI program's run: that of a controller (proto/scenario/journal_file.h), with
// what the ranks called. It is durable where the run ends, and each time that a piece is full.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/mpi/call_log.h"
#include "client/mpi/job.h"
#include "proto/scenario/journal_file.h"

namespace percs::mpi {

class JobJournal {
 public:
  // Continues the journal in `folder`, or starts one, with a run of this machine and program.
  // Errors as JournalFile.
  static absl::StatusOr<std::unique_ptr<JobJournal>> Open(const std::string& folder,
                                                          const v1::Scenario& machine,
                                                          const v1::MpiJob& program);

  // What a rank wrote, in its order.
  absl::Status Add(std::uint32_t rank, const Record& record, const Bytes& bytes);
  // What CallLog::Take returned, of ranks elsewhere.
  absl::Status AddPiece(std::string piece);
  // A command from outside, with its virtual time.
  absl::Status Add(const v1::JournalRecord& command);
  absl::Status End(const JobResult& result);
  // Of the calls so far.
  std::uint64_t bytes() const { return bytes_ + log_.size(); }

 private:
  JobJournal(std::size_t ranks) : log_(ranks) {}
  absl::Status Flush();

  JournalFile file_;
  std::uint64_t run_ = 0, bytes_ = 0;
  CallLog log_;
};

// The run again, without its program. Errors as ReadCalls and BuildScenario.
absl::StatusOr<JobResult> ReplayJob(const v1::Scenario& machine, const v1::MpiJob& program,
                                    const std::vector<v1::JournalRecord>& records);

// Machine and faults of a scenario without workload, which do not end before the program does.
absl::StatusOr<Scenario> MachineOf(const v1::Scenario& message);

}  // namespace percs::mpi
