// Files and gzip.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace percs {

// NOT_FOUND if it cannot be opened, with the system's reason.
absl::StatusOr<std::string> ReadWholeFile(const std::string& path);

bool IsGzip(const std::string& bytes);
// INVALID_ARGUMENT for a damaged stream; RESOURCE_EXHAUSTED above 2 GiB of text.
absl::StatusOr<std::string> Gunzip(const std::string& bytes);
std::string Gzip(const std::string& bytes);

}  // namespace percs
