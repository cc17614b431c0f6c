// What tests of faults say again and again.
#pragma once

#include <cstdint>

#include "emulator/sim/run.h"

namespace percs {

inline constexpr Time kUs = kMicrosecond;

// Packets of all hubs that were dropped for this reason.
inline std::uint64_t Dropped(const RunResult& result, DropReason reason) {
  return result.total.packets_dropped[static_cast<std::size_t>(reason)];
}

}  // namespace percs
