// Files that are written as a whole or not at all.
#pragma once

#include <sys/types.h>

#include <string>

#include "absl/status/status.h"

namespace percs {

// Writes `text` beside the file (to `path`.next) and puts it in the file's place in one step, on
// disk: a reader, also after a crash, finds the old file or the new one. The new one has at most
// the rights of `mode`, from the first moment. UNAVAILABLE.
absl::Status ReplaceFile(const std::string& path, const std::string& text, mode_t mode = 0666);

// A file that one process at a time holds, until the end of this object or of the process.
// ABORTED with `busy` if another process holds it, UNAVAILABLE if it cannot be made.
class LockFile {
 public:
  LockFile() = default;
  LockFile(LockFile&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  LockFile& operator=(LockFile&&) = delete;
  ~LockFile();
  absl::Status Take(const std::string& path, const std::string& busy);

 private:
  int fd_ = -1;
};

}  // namespace percs
