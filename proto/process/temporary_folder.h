// A folder of this process below $TMPDIR, or /tmp, which only its user may enter.
#pragma once

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace percs {

// Removed with everything in it on destruction.
class TemporaryFolder {
 public:
  // Its name begins with `prefix`. UNAVAILABLE with the folder that could not be made.
  static absl::StatusOr<TemporaryFolder> Make(absl::string_view prefix);
  // Likewise, below /tmp if the path leaves no room for a socket with a name of 15 characters.
  static absl::StatusOr<TemporaryFolder> MakeForSockets(absl::string_view prefix);
  TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::move(other.path_)) {
    other.path_.clear();
  }
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  ~TemporaryFolder();
  const std::string& path() const { return path_; }

 private:
  static absl::StatusOr<TemporaryFolder> MakeAt(std::string path);
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace percs
