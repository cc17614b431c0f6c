// What an operation of a CAU carries, and how its tree is named.
#pragma once

#include <array>
#include <cstdint>

namespace percs {

inline constexpr int kCauPayloadMax = 64;  // bytes (paper 003 section 3.6)
using CauTreeId = std::uint16_t;

// Up to 64 bytes; operands of 4 or 8 bytes lie one behind the other.
struct CauPayload {
  std::array<std::uint8_t, kCauPayloadMax> bytes{};
  std::uint8_t size = 0;
};

enum class CauOperation : std::uint8_t { kReduce, kMulticast };

// Sequences count the operations of each kind on a tree from 0. A participant that takes part in
// operation n of a kind has to give it after its operation n - 1 of that kind, and before n + 1;
// several may be on their way. When network management has set a tree up again, they start again at
// 0.

}  // namespace percs
