// A circular FIFO of packets in registered memory, one slot of 2,048 bytes each (paper 000 section
// IV-B). Slots are taken in turn and, whatever order they are done in, given back in turn, as space
// in a ring has to be.
#pragma once

#include <vector>

#include "emulator/base/payload.h"
#include "emulator/scenario/window_operation.h"

namespace percs {

class PacketFifo {
 public:
  void Place(const FifoPlace& place) {
    place_ = place;
    done_.assign(place.slots, false);
    oldest_ = used_ = 0;
  }
  const FifoPlace& place() const { return place_; }
  bool exists() const { return place_.slots > 0; }
  bool full() const { return used_ == place_.slots; }
  std::uint32_t used() const { return used_; }
  static std::uint64_t BytesOf(std::uint32_t slots) {
    return static_cast<std::uint64_t>(slots) * kPacketBytesMax;
  }
  // The next slot. REQUIRES: not full.
  std::uint32_t Take() { return (oldest_ + used_++) % place_.slots; }
  Address AddressOf(std::uint32_t slot) const { return place_.address + BytesOf(slot); }
  void Done(std::uint32_t slot) {
    done_[slot] = true;
    while (used_ > 0 && done_[oldest_]) {
      done_[oldest_] = false;
      oldest_ = (oldest_ + 1) % place_.slots;
      --used_;
    }
  }
  // The `count` oldest. REQUIRES: as many are used, and none of them by Done.
  void Return(std::uint32_t count) {
    oldest_ = (oldest_ + count) % place_.slots;
    used_ -= count;
  }

 private:
  FifoPlace place_;
  std::vector<bool> done_;
  std::uint32_t oldest_ = 0, used_ = 0;
};

}  // namespace percs
