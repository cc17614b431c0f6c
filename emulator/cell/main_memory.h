// Main memory of a blade: real contents, made when first touched; one half behind the memory
// interface controller (MIC) of each Cell. Atomic operations on one cache line take turns.
//
// Not modelled: the caches of the PPEs, banks and refresh.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "emulator/base/time.h"
#include "emulator/cell/local_store.h"

namespace percs::cell {

class MainMemory {
 public:
  explicit MainMemory(std::uint64_t bytes) : size_(bytes), pages_((bytes + kPage - 1) / kPage) {}

  std::uint64_t size() const { return size_; }
  int cell_of(EffectiveAddress ea) const { return ea < size_ / kCells ? 0 : 1; }
  bool holds(EffectiveAddress ea, std::uint64_t bytes) const {
    return bytes <= size_ && ea <= size_ - bytes;
  }

  // REQUIRES: holds(ea, bytes).
  void Read(EffectiveAddress ea, void* to, std::uint64_t bytes) const;
  void Write(EffectiveAddress ea, const void* from, std::uint64_t bytes);
  std::uint32_t Load32(EffectiveAddress ea) const;
  void Store32(EffectiveAddress ea, std::uint32_t value) { Write(ea, &value, sizeof(value)); }

  // Start of an atomic operation that asks at `now` and holds the cache line for `service`.
  Time TakeLine(EffectiveAddress ea, Time now, Time service);

 private:
  static constexpr std::uint64_t kPage = 64 * 1024;
  std::uint64_t size_;
  std::vector<std::unique_ptr<std::uint8_t[]>> pages_;
  absl::flat_hash_map<EffectiveAddress, Time> line_free_;
};

}  // namespace percs::cell
