// Folders and files whose modes matter, whatever the umask is.
#pragma once

#include <sys/types.h>

#include <string>

#include "absl/status/status.h"

namespace percs {

inline constexpr mode_t kPrivateFolder = 0700, kReadableFolder = 0755, kPrivateFile = 0600;

// Makes the folder, and those above it, with at most these rights; existing ones stay as they are.
// UNAVAILABLE if it cannot be made.
absl::Status MakeFolder(const std::string& folder, mode_t mode);

}  // namespace percs
