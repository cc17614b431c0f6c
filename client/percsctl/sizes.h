// Sizes of messages as a user lists them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace percs {

// Of each text `8` (bytes), `64KiB`, or `8..1MiB`: the first and its doubles up to the second.
// INVALID_ARGUMENT quotes what is no size.
absl::StatusOr<std::vector<std::uint64_t>> ParseSizes(const std::vector<std::string>& texts);

}  // namespace percs
