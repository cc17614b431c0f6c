// A checkpoint (docs/semantics.md rule 22): scenario, commands, a virtual time, and what had been
// delivered by then. On disk it is a journal in a folder of its own, whose last record ends the run
// at that time with that digest.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "client/lib/journalled_run.h"
#include "percs/v1/control.pb.h"

namespace percs {

// What ends the journal of a checkpoint where others have the error of a failed run.
inline constexpr char kCheckpointMark[] = "checkpoint";

struct Checkpoint {
  v1::Scenario scenario;                    // self-contained
  std::vector<v1::JournalRecord> commands;  // as the journal has them
  v1::Versions versions;
  Time at = 0;         // virtual; everything before it had happened
  std::string digest;  // DeliveredDigest
};

// ALREADY_EXISTS unless `folder` is empty or is not there; else errors as JournalFile.
absl::Status WriteCheckpoint(const std::string& folder, const Checkpoint& checkpoint);
// Errors as ReadJournalledRun; DATA_LOSS if it is no checkpoint, or not whole.
absl::StatusOr<Checkpoint> ReadCheckpoint(const std::string& folder);

}  // namespace percs
