// Local store of an SPE, with real contents, made when first touched, and the effective addresses
// of a blade: main memory from 0 on, and every local store as a window that others reach by DMA.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>

#include "absl/types/span.h"
#include "emulator/base/check.h"
#include "emulator/cell/blade_parameters.h"

namespace percs::cell {

using LsAddress = std::uint32_t;         // within a local store
using EffectiveAddress = std::uint64_t;  // within the blade

inline constexpr EffectiveAddress kLocalStoreBase = EffectiveAddress{1} << 40;
inline constexpr EffectiveAddress kLocalStoreStride = 1 << 20;

// Effective address of `ls` in the local store of `spe` (0-15).
constexpr EffectiveAddress LocalStoreAddress(int spe, LsAddress ls) {
  return kLocalStoreBase + static_cast<EffectiveAddress>(spe) * kLocalStoreStride + ls;
}

class LocalStore {
 public:
  absl::Span<std::uint8_t> bytes() { return {Contents(), kLocalStoreBytes}; }
  std::uint8_t* at(LsAddress ls) { return Contents() + ls; }

  // A value of the program's own at `ls`. REQUIRES: inside the local store.
  template <typename T>
  T Load(LsAddress ls) const {
    PERCS_CHECK(ls + sizeof(T) <= kLocalStoreBytes);
    T value;
    std::memcpy(&value, Contents() + ls, sizeof(T));
    return value;
  }
  template <typename T>
  void Store(LsAddress ls, const T& value) {
    PERCS_CHECK(ls + sizeof(T) <= kLocalStoreBytes);
    std::memcpy(Contents() + ls, &value, sizeof(T));
  }

 private:
  std::uint8_t* Contents() const {
    if (!bytes_) bytes_ = std::make_unique<std::uint8_t[]>(kLocalStoreBytes);
    return bytes_.get();
  }

  mutable std::unique_ptr<std::uint8_t[]> bytes_;  // zeros if null
};

}  // namespace percs::cell
