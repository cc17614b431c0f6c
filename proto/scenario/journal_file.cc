#include "proto/scenario/journal_file.h"

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "emulator/base/digest.h"
#include "fmt/format.h"
#include "proto/process/folders.h"
#include "proto/scenario/file.h"

namespace percs {
namespace {

namespace fs = std::filesystem;

constexpr char kMagic[] = "PERCSJNL";
constexpr std::size_t kMagicSize = 8, kHeaderSize = kMagicSize + 8, kFrameSize = 8;
constexpr std::uint32_t kRecordMax = 64 << 20;

void AddNumber(std::uint32_t value, std::string* to) {
  for (int shift = 0; shift < 32; shift += 8)
    to->push_back(static_cast<char>(value >> shift & 0xff));
}

std::uint32_t NumberAt(const std::string& bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (int i = 3; i >= 0; --i)
    value = value << 8 | static_cast<unsigned char>(bytes[at + static_cast<std::size_t>(i)]);
  return value;
}

std::uint32_t Crc(const char* bytes, std::size_t size) {
  return static_cast<std::uint32_t>(
      crc32(0, reinterpret_cast<const Bytef*>(bytes), static_cast<uInt>(size)));
}

std::string Header() {
  std::string header(kMagic, kMagicSize);
  AddNumber(kJournalFormat, &header);
  AddNumber(Crc(header.data(), header.size()), &header);
  return header;
}

std::string FileOf(const std::string& path) {
  std::error_code error;
  return fs::is_directory(path, error) ? path + "/journal" : path;
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

// 0, or the error.
int WriteAll(int file, const char* bytes, std::size_t size, off_t at) {
  while (size > 0) {
    const ssize_t written = pwrite(file, bytes, size, at);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return written < 0 ? errno : ENOSPC;
    bytes += written;
    size -= static_cast<std::size_t>(written);
    at += written;
  }
  return 0;
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

void SyncFolder(const std::string& folder) {
  const int file = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) return;
  fsync(file);
  close(file);
}

}  // namespace

absl::StatusOr<JournalContents> ReadJournal(const std::string& path) {
  const std::string file = FileOf(path);
  const auto bytes = ReadWholeFile(file);
  if (!bytes.ok()) return bytes.status();
  if (absl::Status status = CheckHeader(*bytes, file); !status.ok()) return status;
  JournalContents contents;
  std::size_t at = kHeaderSize;
  while (bytes->size() - at >= kFrameSize) {
    const std::uint32_t size = NumberAt(*bytes, at);
    if (size > kRecordMax || bytes->size() - at - kFrameSize < size) break;
    const char* record = bytes->data() + at + kFrameSize;
    v1::JournalRecord message;
    if (Crc(record, size) != NumberAt(*bytes, at + 4) ||
        !message.ParseFromArray(record, static_cast<int>(size)))
      break;
    contents.records.push_back(std::move(message));
    at += kFrameSize + size;
  }
  contents.whole = at;
  contents.cut_off = bytes->size() - at;
  return contents;
}

absl::StatusOr<std::string> ReadPayload(const std::string& path, std::uint64_t hash) {
  const std::string file = fs::path(FileOf(path)).parent_path() / PayloadName(hash);
  auto bytes = ReadWholeFile(file);
  if (!bytes.ok()) return bytes.status();
  if (HashBytes(bytes->data(), bytes->size()) != hash) {
    return absl::DataLossError(
        fmt::format("{} is damaged: its content does not match the hash in its name", file));
  }
  return bytes;
}

void JournalFile::Close() {
  if (file_ >= 0) close(file_);
  file_ = -1;
}

absl::Status JournalFile::Open(const std::string& folder, std::uint64_t size_max) {
  Close();
  folder_ = folder;
  size_max_ = size_max;
  std::error_code error;
  if (absl::Status status = MakeFolder(folder, kPrivateFolder); !status.ok()) return status;
  const std::string name = folder + "/journal";
  const bool exists = fs::exists(name, error) && fs::file_size(name, error) > 0;
  if (exists) {
    const auto contents = ReadJournal(name);
    if (!contents.ok()) return contents.status();
    size_ = contents->whole;
    cut_off_ = contents->cut_off;
    for (const v1::JournalRecord& record : contents->records)
      last_run_ = std::max(last_run_, record.run());
  }
  file_ = open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, kPrivateFile);
  if (file_ < 0) {
    return absl::UnavailableError(
        fmt::format("cannot write a journal into {}: {}", folder, std::strerror(errno)));
  }
  payloads_ = 0;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().filename().string().rfind("payload-", 0) == 0)
      payloads_ += entry.file_size(error);
  }
  if (exists) {
    if (cut_off_ > 0 && ftruncate(file_, static_cast<off_t>(size_)) != 0)
      return DiskError("cutting it off", errno);
    return absl::OkStatus();
  }
  size_ = 0;
  absl::Status status = Write(Header());
  SyncFolder(folder);
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
  int error = WriteAll(file_, bytes.data(), bytes.size(), static_cast<off_t>(size_));
  if (error == 0 && fdatasync(file_) != 0) error = errno;
  if (error != 0) {
    if (ftruncate(file_, static_cast<off_t>(size_)) != 0)
      return DiskError("taking a record back", errno);
    return DiskError("writing", error);
  }
  size_ += bytes.size();
  return absl::OkStatus();
}

absl::Status JournalFile::Append(absl::Span<const v1::JournalRecord> records) {
  std::string bytes;
  for (const v1::JournalRecord& record : records) {
    const std::string text = record.SerializeAsString();
    if (text.size() > kRecordMax) {
      return absl::ResourceExhaustedError(fmt::format(
          "the command has {} bytes; the journal takes at most {}", text.size(), kRecordMax));
    }
    AddNumber(static_cast<std::uint32_t>(text.size()), &bytes);
    AddNumber(Crc(text.data(), text.size()), &bytes);
    bytes += text;
  }
  if (absl::Status status = CheckRoom(bytes.size()); !status.ok()) return status;
  return Write(bytes);
}

absl::StatusOr<std::uint64_t> JournalFile::Store(const std::string& bytes) {
  const std::uint64_t hash = HashBytes(bytes.data(), bytes.size());
  if (ReadPayload(folder_, hash).ok()) return hash;
  if (absl::Status status = CheckRoom(bytes.size()); !status.ok()) return status;
  const std::string name = folder_ + "/" + PayloadName(hash), part = name + ".part";
  const int file = open(part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, kPrivateFile);
  if (file < 0) return DiskError("keeping " + name, errno);
  int error = WriteAll(file, bytes.data(), bytes.size(), 0);
  if (error == 0 && fsync(file) != 0) error = errno;
  close(file);
  if (error == 0 && rename(part.c_str(), name.c_str()) != 0) error = errno;
  if (error != 0) {
    unlink(part.c_str());
    return DiskError("keeping " + name, error);
  }
  SyncFolder(folder_);
  payloads_ += bytes.size();
  return hash;
}

}  // namespace percs
