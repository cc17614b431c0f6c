// The global clock (paper 000 section IV-C): one clock distributed over the fabric and kept
// consistent at all hubs. No figure of it is published; these are choices (gaps.md G8).
#pragma once

#include <cstdint>

#include "emulator/base/time.h"

namespace percs {

struct ClockSettings {
  Time period = 100 * kMicrosecond;  // between two sync symbols of the source
  std::int64_t drift_ppb = 20'000;   // of an oscillator, at most, either way: parts per billion
  Time error =
      2 * kNanosecond;  // of the delay of one link as its receiver knows it, at most, either way
  bool operator==(const ClockSettings&) const = default;
};

}  // namespace percs
