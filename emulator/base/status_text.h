#pragma once

#include <string>

#include "absl/status/status.h"

namespace percs {

// The message without its code. (Debian's absl::string_view converts to a string by name only.)
inline std::string MessageOf(const absl::Status& status) { return std::string(status.message()); }

}  // namespace percs
