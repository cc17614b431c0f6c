#include "proto/process/replace_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace percs {
namespace {

absl::Status Failed(const std::string& path) {
  return absl::UnavailableError(fmt::format("cannot write {}: {}", path, std::strerror(errno)));
}

// Closes the file, and fails if any of its bytes is not on disk.
bool WriteAll(int fd, const std::string& text) {
  std::size_t written = 0;
  while (written < text.size()) {
    const ssize_t now = write(fd, text.data() + written, text.size() - written);
    if (now < 0 && errno == EINTR) continue;
    if (now < 0) break;
    written += static_cast<std::size_t>(now);
  }
  const bool good = written == text.size() && fsync(fd) == 0;
  const int why = errno;
  const bool closed = close(fd) == 0;
  if (!good) errno = why;
  return good && closed;
}

}  // namespace

absl::Status ReplaceFile(const std::string& path, const std::string& text, mode_t mode) {
  const std::string next = path + ".next";
  unlink(next.c_str());  // of one that crashed, maybe with other rights
  const int fd = open(next.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  if (fd < 0 || !WriteAll(fd, text)) return Failed(next);
  return std::rename(next.c_str(), path.c_str()) == 0 ? absl::OkStatus() : Failed(path);
}

LockFile::~LockFile() {
  if (fd_ >= 0) close(fd_);
}

absl::Status LockFile::Take(const std::string& path, const std::string& busy) {
  fd_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd_ < 0) {
    return absl::UnavailableError(fmt::format("cannot open {}: {}", path, std::strerror(errno)));
  }
  if (flock(fd_, LOCK_EX | LOCK_NB) == 0) return absl::OkStatus();
  return absl::AbortedError(busy);
}

}  // namespace percs
