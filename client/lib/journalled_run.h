// One run of a controller's journal, ready to be run again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "emulator/base/time.h"
#include "percs/v1/control.pb.h"
#include "proto/scenario/disk.h"

namespace percs {

struct JournalledRun {
  std::uint64_t number = 0, cut_off = 0;
  v1::JournalApply apply;
  v1::Scenario scenario;
  std::vector<v1::JournalRecord> commands;  // as a replay takes them
  std::optional<v1::JournalEnd> end;
  Time end_at = 0;  // virtual
};

// `journal`: the file, or the folder it is in. Run `number`; 0: the last one. In batch mode,
// whatever it was. Errors as ReadJournal, NOT_FOUND for a run that is not there.
absl::StatusOr<JournalledRun> ReadJournalledRun(const std::string& journal, std::uint64_t number,
                                                Disk& disk = Disk::Real());

// NOT_FOUND if a path that a user gave is neither a file nor a folder with a journal in it: says
// what is near, the journal of a local fabric of this name included.
absl::Status FindJournal(const std::string& path);

}  // namespace percs
