#include "proto/scenario/journal_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "emulator/base/digest.h"
#include "fmt/format.h"
#include "proto/scenario/record_frame.h"

namespace percs {
namespace {

namespace fs = std::filesystem;

constexpr char kMagic[] = "PERCSJNL";
constexpr std::size_t kMagicSize = 8, kHeaderSize = kMagicSize + 8;

std::string Header() {
  std::string header(kMagic, kMagicSize);
  AddNumber(kJournalFormat, &header);
  AddNumber(Crc(header.data(), header.size()), &header);
  return header;
}

std::string FileOf(const std::string& path, Disk& disk) {
  return disk.IsFolder(path) ? path + "/journal" : path;
}

std::string PayloadName(std::uint64_t hash) { return fmt::format("payload-{:016x}", hash); }

absl::Status DiskError(const std::string& what, int error) {
  const std::string text = fmt::format("journal: {}: {}", what, std::strerror(error));
  if (error == ENOSPC || error == EDQUOT || error == EFBIG) {
    return absl::ResourceExhaustedError(text +
                                        "; free some space: commands are not accepted until then");
  }
  return absl::UnavailableError(text);
}

absl::Status CheckHeader(const std::string& bytes, const std::string& file) {
  if (bytes.size() < kHeaderSize || bytes.compare(0, kMagicSize, kMagic) != 0 ||
      NumberAt(bytes, kMagicSize + 4) != Crc(bytes.data(), kMagicSize + 4)) {
    return absl::DataLossError(fmt::format(
        "{} is not a journal: its first {} bytes differ from a journal's", file, kHeaderSize));
  }
  const std::uint32_t format = NumberAt(bytes, kMagicSize);
  if (format <= kJournalFormat) return absl::OkStatus();
  return absl::FailedPreconditionError(fmt::format(
      "{} has format {}, and this software reads formats up to {}", file, format, kJournalFormat));
}

}  // namespace

absl::StatusOr<JournalContents> ReadJournal(const std::string& path, Disk& disk) {
  const std::string file = FileOf(path, disk);
  const auto bytes = disk.Read(file);
  if (!bytes.ok()) return bytes.status();
  if (absl::Status status = CheckHeader(*bytes, file); !status.ok()) return status;
  JournalContents contents;
  std::size_t at = kHeaderSize;
  for (v1::JournalRecord record; ReadFrame(*bytes, &at, &record);)
    contents.records.push_back(std::move(record));
  contents.whole = at;
  contents.cut_off = bytes->size() - at;
  return contents;
}

absl::StatusOr<std::string> ReadPayload(const std::string& path, std::uint64_t hash, Disk& disk) {
  const std::string file = fs::path(FileOf(path, disk)).parent_path() / PayloadName(hash);
  auto bytes = disk.Read(file);
  if (!bytes.ok()) return bytes.status();
  if (HashBytes(bytes->data(), bytes->size()) != hash) {
    return absl::DataLossError(
        fmt::format("{} is damaged: its content does not match the hash in its name", file));
  }
  return bytes;
}

absl::Status JournalFile::Open(const std::string& folder, std::uint64_t size_max) {
  Close();
  folder_ = folder;
  size_max_ = size_max;
  if (absl::Status status = disk_->MakeFolder(folder); !status.ok()) return status;
  const std::string name = folder + "/journal";
  bool exists = false;
  payloads_ = 0;
  for (const auto& [file, size] : disk_->List(folder)) {
    exists |= file == "journal" && size > 0;
    if (file.rfind("payload-", 0) == 0) payloads_ += size;
  }
  if (exists) {
    const auto contents = ReadJournal(name, *disk_);
    if (!contents.ok()) return contents.status();
    size_ = contents->whole;
    cut_off_ = contents->cut_off;
    for (const v1::JournalRecord& record : contents->records) {
      last_run_ = std::max(last_run_, record.run());
      if (record.has_end()) last_ended_ = std::max(last_ended_, record.run());
    }
  }
  auto file = disk_->Open(name, /*empty=*/false);
  if (!file.ok()) {
    return absl::UnavailableError(
        fmt::format("cannot write a journal into {}: {}", folder, std::strerror(file.error)));
  }
  file_ = std::move(file.file);
  if (exists) {
    const int error = cut_off_ > 0 ? file_->Truncate(size_) : 0;
    if (error != 0) return DiskError("cutting it off", error);
    // A process that was killed may have written the last records and not synced them. Whoever
    // opens it acts upon them.
    const int unsynced = file_->Sync();
    return unsynced == 0 ? absl::OkStatus() : DiskError("syncing", unsynced);
  }
  size_ = 0;
  absl::Status status = Write(Header());
  disk_->SyncFolder(folder);
  return status;
}

absl::Status JournalFile::CheckRoom(std::uint64_t bytes) const {
  if (size_ + payloads_ + bytes <= size_max_) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      fmt::format("the journal has {} of at most {} bytes; no record is ever deleted, so no "
                  "command is accepted: raise --journal-limit, or start with another --state-dir",
                  size_ + payloads_, size_max_));
}

// At the end, or not at all.
absl::Status JournalFile::Write(const std::string& bytes) {
  int error = file_->Write(bytes, size_);
  if (error == 0) error = file_->Sync();
  if (error != 0) {
    if (const int again = file_->Truncate(size_); again != 0)
      return DiskError("taking a record back", again);
    return DiskError("writing", error);
  }
  size_ += bytes.size();
  return absl::OkStatus();
}

absl::Status JournalFile::Append(absl::Span<const v1::JournalRecord> records) {
  std::string bytes;
  for (const v1::JournalRecord& record : records) {
    if (const std::size_t size = record.ByteSizeLong(); size > kFrameMax) {
      return absl::ResourceExhaustedError(
          fmt::format("the command has {} bytes; the journal takes at most {}", size, kFrameMax));
    }
    AddFrame(record, &bytes);
  }
  if (absl::Status status = CheckRoom(bytes.size()); !status.ok()) return status;
  return Write(bytes);
}

absl::StatusOr<std::uint64_t> JournalFile::Store(const std::string& bytes) {
  const std::uint64_t hash = HashBytes(bytes.data(), bytes.size());
  if (ReadPayload(folder_, hash, *disk_).ok()) return hash;
  if (absl::Status status = CheckRoom(bytes.size()); !status.ok()) return status;
  const std::string name = folder_ + "/" + PayloadName(hash), part = name + ".part";
  auto file = disk_->Open(part, /*empty=*/true);
  if (!file.ok()) return DiskError("keeping " + name, file.error);
  int error = file.file->Write(bytes, 0);
  if (error == 0) error = file.file->Sync();
  file.file.reset();
  if (error == 0) error = disk_->Rename(part, name);
  if (error != 0) {
    disk_->Remove(part);
    return DiskError("keeping " + name, error);
  }
  disk_->SyncFolder(folder_);
  payloads_ += bytes.size();
  return hash;
}

}  // namespace percs
