// Numbers of either sign as numbers without, so that small ones have few bytes as variable-length
// integers.
#pragma once

#include <cstdint>

namespace percs {

constexpr std::uint64_t ZigZag(std::int64_t v) {
  return (static_cast<std::uint64_t>(v) << 1) ^ static_cast<std::uint64_t>(v >> 63);
}
constexpr std::int64_t UnZigZag(std::uint64_t v) {
  return static_cast<std::int64_t>(v >> 1) ^ -static_cast<std::int64_t>(v & 1);
}

}  // namespace percs
