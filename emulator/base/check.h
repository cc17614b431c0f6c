// PERCS_CHECK is for bugs only: it stays on in every build and ends the process. Anything a user, a
// file or a peer can cause is an absl::Status.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace percs::internal {
[[noreturn]] inline void CheckFailed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: bug: %s does not hold\n", file, line, condition);
  std::abort();
}
}  // namespace percs::internal

#define PERCS_CHECK(condition)                       \
  (__builtin_expect(static_cast<bool>(condition), 1) \
       ? static_cast<void>(0)                        \
       : ::percs::internal::CheckFailed(#condition, __FILE__, __LINE__))
