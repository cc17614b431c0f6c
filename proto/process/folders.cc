#include "proto/process/folders.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "fmt/format.h"

namespace percs {

absl::Status MakeFolder(const std::string& folder, mode_t mode) {
  std::filesystem::path so_far;
  for (const auto& part : std::filesystem::path(folder)) {
    so_far /= part;
    if (mkdir(so_far.c_str(), mode) == 0 || errno == EEXIST) continue;
    // The root of a read-only file system, for example, is there all the same.
    const int error = errno;
    std::error_code ignored;
    if (std::filesystem::is_directory(so_far, ignored)) continue;
    return absl::UnavailableError(
        fmt::format("cannot make the folder {}: {}", folder, std::strerror(error)));
  }
  return absl::OkStatus();
}

}  // namespace percs
