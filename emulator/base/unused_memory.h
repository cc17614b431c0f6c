// For memory that is kept to be used again: in builds with the address sanitizer, an access to what
// is marked as unused is reported like one to freed memory. Otherwise this does nothing.
#pragma once

#include <cstddef>

#include "absl/base/config.h"
#ifdef ABSL_HAVE_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#endif

namespace percs {

// Whole words of eight bytes are marked: a last part of one is not.
inline void MarkUnused([[maybe_unused]] const void* memory, [[maybe_unused]] std::size_t bytes) {
#ifdef ABSL_HAVE_ADDRESS_SANITIZER
  ASAN_POISON_MEMORY_REGION(memory, bytes);
#endif
}

inline void MarkUsed([[maybe_unused]] const void* memory, [[maybe_unused]] std::size_t bytes) {
#ifdef ABSL_HAVE_ADDRESS_SANITIZER
  ASAN_UNPOISON_MEMORY_REGION(memory, bytes);
#endif
}

}  // namespace percs
