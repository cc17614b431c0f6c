#include "emulator/cell/main_memory.h"

#include <algorithm>
#include <cstring>

namespace percs::cell {

void MainMemory::Read(EffectiveAddress ea, void* to, std::uint64_t bytes) const {
  PERCS_CHECK(holds(ea, bytes));
  auto* out = static_cast<std::uint8_t*>(to);
  while (bytes > 0) {
    const std::uint64_t offset = ea % kPage, part = std::min(bytes, kPage - offset);
    const auto& page = pages_[ea / kPage];
    if (page) {
      std::memcpy(out, page.get() + offset, part);
    } else {
      std::memset(out, 0, part);
    }
    ea += part, out += part, bytes -= part;
  }
}

void MainMemory::Write(EffectiveAddress ea, const void* from, std::uint64_t bytes) {
  PERCS_CHECK(holds(ea, bytes));
  const auto* in = static_cast<const std::uint8_t*>(from);
  while (bytes > 0) {
    const std::uint64_t offset = ea % kPage, part = std::min(bytes, kPage - offset);
    auto& page = pages_[ea / kPage];
    if (!page) page = std::make_unique<std::uint8_t[]>(kPage);
    std::memcpy(page.get() + offset, in, part);
    ea += part, in += part, bytes -= part;
  }
}

std::uint32_t MainMemory::Load32(EffectiveAddress ea) const {
  std::uint32_t value;
  Read(ea, &value, sizeof(value));
  return value;
}

Time MainMemory::TakeLine(EffectiveAddress ea, Time now, Time service) {
  Time& free = line_free_[ea / kLineBytes];
  const Time start = std::max(now, free);
  free = start + service;
  return start;
}

}  // namespace percs::cell
