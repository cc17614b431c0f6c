// What the SPEs of a blade did by DMA: commands that were completed. It changes nothing in the
// machine and is in no digest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "emulator/base/time.h"

namespace percs::cell {

struct DmaSlice {
  std::uint8_t spe = 0;
  const char* kind = "";  // put, get, put list, get list, signal
  std::uint32_t bytes = 0;
  std::uint8_t cell = 0, unit = 0;  // the other end, of a list that of its last element
  Time issued = 0, started = 0, done = 0;
};
inline constexpr std::size_t kDmaSlicesMax = 20'000;  // of a blade

class DmaLog {
 public:
  // From now on commands are kept, until there are `slices_max`.
  void Keep(std::size_t slices_max) { slices_max_ = slices_max; }
  bool keeps() const { return slices_.size() < slices_max_; }
  // REQUIRES: keeps().
  void Add(const DmaSlice& slice) { slices_.push_back(slice); }
  const std::vector<DmaSlice>& slices() const { return slices_; }

 private:
  std::size_t slices_max_ = 0;
  std::vector<DmaSlice> slices_;
};

}  // namespace percs::cell
