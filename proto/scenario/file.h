// Files and gzip.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>

#include "absl/status/statusor.h"

namespace percs {

// NOT_FOUND if it cannot be opened, with the system's reason; INVALID_ARGUMENT if it is none, but a
// directory, a device, a pipe or a socket; RESOURCE_EXHAUSTED if it has more bytes than that.
absl::StatusOr<std::string> ReadWholeFile(
    const std::string& path, std::uint64_t bytes_max = std::numeric_limits<std::uint64_t>::max());

// Every folder of a path that does not exist, and then its last name, replaced by the nearest name
// there is; "" if there is none near, or what that leads to does not fit.
std::string NearestPath(const std::string& path,
                        const std::function<bool(const std::string&)>& fits);

bool IsGzip(const std::string& bytes);
// INVALID_ARGUMENT for a damaged stream; RESOURCE_EXHAUSTED above that many bytes of text.
absl::StatusOr<std::string> Gunzip(const std::string& bytes, std::uint64_t bytes_max);
std::string Gzip(const std::string& bytes);

}  // namespace percs
