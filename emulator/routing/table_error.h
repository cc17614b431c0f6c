#pragma once

#include <string>

#include "absl/status/status.h"

namespace percs {

// What a table set is refused with: FAILED_PRECONDITION with the reason.
inline absl::Status TablesWrong(const std::string& message) {
  return absl::FailedPreconditionError("route tables: " + message);
}

}  // namespace percs
