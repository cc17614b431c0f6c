#include "client/lib/huge_pages.h"

#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

namespace percs {

void ExpectMemory(std::size_t bytes) {
  constexpr std::size_t kHugePage = std::size_t{2} << 20, kWorthwhile = std::size_t{64} << 20;
  if (bytes < kWorthwhile) return;
  // One block at the end of the heap, which is given back to the heap and not to the system.
  constexpr int kDefaultBlocksMapped = 65536, kLargestInHeap = 32 << 20;
  mallopt(M_TRIM_THRESHOLD, -1);
  mallopt(M_MMAP_THRESHOLD, kLargestInHeap);
  mallopt(M_ARENA_MAX, 1);  // threads would have memory apart, without huge pages
  mallopt(M_MMAP_MAX, 0);
  void* block = std::malloc(bytes);
  while (!block && bytes / 2 >= kWorthwhile) block = std::malloc(bytes /= 2);
  mallopt(M_MMAP_MAX, kDefaultBlocksMapped);
  if (!block) return;
  const auto begin = reinterpret_cast<std::uintptr_t>(block);
  const auto heap_end = reinterpret_cast<std::uintptr_t>(sbrk(0));
  if (begin + bytes <= heap_end) {  // else it is not in the heap
    const std::uintptr_t first = (begin + kHugePage - 1) / kHugePage * kHugePage;
    const std::uintptr_t last = (begin + bytes) / kHugePage * kHugePage;
    madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);
  }
  std::free(block);
}

}  // namespace percs
