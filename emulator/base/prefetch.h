// Memory that will be looked at soon is on its way into the cache meanwhile.
#pragma once

namespace percs {

// Has the cache line at `address` fetched, which need not be one of the program's. GCC takes a
// function that does nothing else for one without effects, and leaves its calls out: the empty
// statement is an effect.
[[gnu::always_inline]] inline void FetchLine(const void* address) {
  __builtin_prefetch(address);
  asm volatile("");
}

}  // namespace percs
