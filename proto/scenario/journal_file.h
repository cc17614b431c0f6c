// The journal of a controller on disk: every command from outside with the virtual time at which it
// took effect.
//
// `journal` begins with eight letters, the version of the format and their CRC; then records
// follow, each a length and a CRC (4 bytes each, little-endian) and a percs.v1.JournalRecord. What
// is large is kept once, beside it, in `payload-HASH`. A record is written as a whole or not at
// all: a partial record that a crash left is cut off when the journal is opened again.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "percs/v1/control.pb.h"
#include "proto/scenario/disk.h"

namespace percs {

inline constexpr std::uint32_t kJournalFormat = 1;

struct JournalContents {
  std::vector<v1::JournalRecord> records;
  std::uint64_t whole = 0;    // bytes up to the end of the last whole record
  std::uint64_t cut_off = 0;  // bytes after it that are no whole record
};

// `path`: the file, or the folder it is in. NOT_FOUND; DATA_LOSS if it is no journal;
// FAILED_PRECONDITION with both numbers for a newer format.
absl::StatusOr<JournalContents> ReadJournal(const std::string& path, Disk& disk = Disk::Real());
// From the folder of the journal at `path`. NOT_FOUND; DATA_LOSS if it is not what its hash says.
absl::StatusOr<std::string> ReadPayload(const std::string& path, std::uint64_t hash,
                                        Disk& disk = Disk::Real());

class JournalFile {
 public:
  // The disk lives as long as this.
  explicit JournalFile(Disk* disk = &Disk::Real()) : disk_(disk) {}
  ~JournalFile() { Close(); }
  JournalFile(const JournalFile&) = delete;
  JournalFile& operator=(const JournalFile&) = delete;

  // Continues the journal in `folder`, after its last whole record, or starts one. `size_max` in
  // bytes, payloads included. Errors as ReadJournal, and UNAVAILABLE if the folder cannot be
  // written to.
  absl::Status Open(const std::string& folder, std::uint64_t size_max);
  bool is_open() const { return file_ != nullptr; }
  void Close() { file_.reset(); }
  // What was cut off when it was opened.
  std::uint64_t cut_off() const { return cut_off_; }
  // The highest number of a run that was in it when it was opened.
  std::uint64_t last_run() const { return last_run_; }
  // The highest of those whose end was in it.
  std::uint64_t last_ended() const { return last_ended_; }

  // All of them, durable when it returns: one write and one sync. RESOURCE_EXHAUSTED above
  // `size_max` and when the disk is full, UNAVAILABLE for other errors; then nothing was written.
  absl::Status Append(absl::Span<const v1::JournalRecord> records);
  // Returns the name of `bytes`. Errors as Append. Equal bytes are kept once.
  absl::StatusOr<std::uint64_t> Store(const std::string& bytes);

 private:
  absl::Status CheckRoom(std::uint64_t bytes) const;
  absl::Status Write(const std::string& bytes);

  Disk* disk_;
  std::string folder_;
  std::unique_ptr<Disk::File> file_;
  std::uint64_t size_ = 0;      // of `journal`
  std::uint64_t payloads_ = 0;  // bytes in payload files
  std::uint64_t size_max_ = 0, cut_off_ = 0, last_run_ = 0, last_ended_ = 0;
};

}  // namespace percs
