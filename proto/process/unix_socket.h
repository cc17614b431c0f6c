// Whether a process may listen on a Unix socket, and who listens there now.
#pragma once

#include <cstddef>
#include <string>

#include "absl/status/status.h"

namespace percs {

// Bytes of the longest path.
std::size_t UnixPathMax();

// INVALID_ARGUMENT for a path of no bytes or too many.
absl::Status CheckUnixPath(const std::string& path);
// OK if no process listens at `path`; binding removes what a crash left. Errors as CheckUnixPath;
// ALREADY_EXISTS for a file that is not a socket, and names the process that listens.
absl::Status CheckUnixFree(const std::string& path);

// `percs-controller (pid 1234)`.
std::string DescribeProcess(int pid);

}  // namespace percs
