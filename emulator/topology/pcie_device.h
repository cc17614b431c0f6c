// What is plugged into the PCI Express ports of hubs (paper 000 section IV-F): of a hub's three
// ports two have 16 lanes and one has 8, and each works with fewer.
#pragma once

#include <array>
#include <cstdint>

#include "emulator/base/ids.h"
#include "emulator/base/time.h"

namespace percs {

inline constexpr int kPciePorts = 3;
inline constexpr std::array<int, kPciePorts> kPcieLanes = {16, 16, 8};
inline constexpr bool IsPcieWidth(int lanes) {
  return lanes == 1 || lanes == 4 || lanes == 8 || lanes == 16;
}

// An I/O endpoint with bytes of its own, zeros at first.
struct PcieDevice {
  NodeId hub = 0;
  int port = 0;   // 0..2
  int lanes = 8;  // 1, 4, 8 or 16; the link has no more than the port
  std::uint64_t bytes = std::uint64_t{1} << 30;  // 1..kBytesMax
  Time latency = kMicrosecond;                   // 0..kLatencyMax; choice: of a fast device
  bool operator==(const PcieDevice&) const = default;

  static constexpr std::uint64_t kBytesMax = std::uint64_t{1} << 36;
  static constexpr Time kLatencyMax = 10 * kMillisecond;
};

// Where the bytes of registered memory are: in main memory, or from `offset` on in the device of a
// port.
struct MemoryPlace {
  int port = -1;
  std::uint64_t offset = 0;
  bool on_device() const { return port >= 0; }
};

}  // namespace percs
