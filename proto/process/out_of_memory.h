// When memory is not sufficient for a program or a request: an error message, and never an abort
// without one.
#pragma once

#include <new>
#include <stdexcept>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"

namespace percs {

// From now on a program that runs out of memory where no other code deals with it says so on
// standard error, with the limit if one is set, and ends with exit status 1. So does one that a
// library ends because of that. `program` has to stay.
void EndWhenOutOfMemory(const char* program);

// RESOURCE_EXHAUSTED: `what` needs more memory than there is.
absl::Status OutOfMemory(std::string_view what);

// What `act` returns, which is a status or has one; OutOfMemory if it runs out of memory. Whatever
// it was building is gone then, and its memory is there again. `act` runs with the locks that the
// caller holds.
template <typename Act>
ABSL_NO_THREAD_SAFETY_ANALYSIS auto WithinMemory(std::string_view what, Act act)
    -> decltype(act()) {
  try {
    return act();
  } catch (const std::bad_alloc&) {
    return OutOfMemory(what);
  } catch (const std::length_error&) {  // more than any machine has
    return OutOfMemory(what);
  }
}

}  // namespace percs
