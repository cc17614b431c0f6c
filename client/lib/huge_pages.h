// Huge pages for machines with many hubs.
#pragma once

#include <cstddef>

namespace percs {

// Asks the kernel for huge pages for the next `bytes` that are allocated, by whichever thread: more
// memory than the pages that the processor keeps addresses of is slow to reach otherwise. A hint,
// without effect where the kernel has no transparent huge pages or `bytes` are few; less if the
// machine does not have so much. Costs addresses, and memory only for what is used; that stays with
// the process.
// THREAD: before there are other threads that allocate.
void ExpectMemory(std::size_t bytes);

}  // namespace percs
