// Small helpers for absl::Status.
#pragma once

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace percs {

// The message without its code. (Debian's absl::string_view converts to a string by name only.)
inline std::string MessageOf(const absl::Status& status) { return std::string(status.message()); }

// Moves the value to `*to`, or returns the error.
template <typename T>
absl::Status MoveValue(absl::StatusOr<T> from, T* to) {
  if (!from.ok()) return from.status();
  *to = *std::move(from);
  return absl::OkStatus();
}

}  // namespace percs
