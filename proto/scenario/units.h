// Quantities as people write them: 64KiB, 40us, 5GB/s, 1us/s. Exact: a text stands for one whole
// number of base units or for an error.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace percs {

enum class Quantity : std::uint8_t {
  kTime,   // picoseconds: ps ns us ms s
  kBytes,  // bytes: B kB MB GB KiB MiB GiB
  kRate,   // bytes per second: B/s kB/s MB/s GB/s TB/s KiB/s MiB/s GiB/s
  kPace,   // picoseconds of virtual time per wall second: ps/s ns/s us/s ms/s s/s
};

// INVALID_ARGUMENT quotes the text, says what is wrong and what would be right; a bare number is
// wrong.
absl::StatusOr<std::int64_t> ParseQuantity(Quantity quantity, const std::string& text);
// The shortest text that stands for exactly `value`. ParseQuantity reads it back.
std::string PrintQuantity(Quantity quantity, std::int64_t value);

inline absl::StatusOr<std::int64_t> ParseTime(const std::string& text) {
  return ParseQuantity(Quantity::kTime, text);
}
inline absl::StatusOr<std::int64_t> ParseBytes(const std::string& text) {
  return ParseQuantity(Quantity::kBytes, text);
}
inline absl::StatusOr<std::int64_t> ParseRate(const std::string& text) {
  return ParseQuantity(Quantity::kRate, text);
}
inline std::string PrintTime(std::int64_t picoseconds) {
  return PrintQuantity(Quantity::kTime, picoseconds);
}
inline std::string PrintBytes(std::int64_t bytes) { return PrintQuantity(Quantity::kBytes, bytes); }
inline std::string PrintRate(std::int64_t bytes_per_second) {
  return PrintQuantity(Quantity::kRate, bytes_per_second);
}

// A regular expression (ECMA 262) for the texts of a quantity, for the JSON Schema.
std::string QuantityPattern(Quantity quantity);

}  // namespace percs
