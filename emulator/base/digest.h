// The result digest: a running 128-bit hash over 64-bit words, the same on every host. It is a
// fingerprint for equality of results, not a cryptographic hash.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace percs {

struct Digest {
  std::uint64_t high = 0, low = 0;
  bool operator==(const Digest&) const = default;
  std::string ToString() const;  // 32 hexadecimal digits
};

class DigestStream {
 public:
  void Add(std::uint64_t word) {
    a_ = (a_ ^ word) * 0x9fb21c651e98df25ull;
    a_ ^= a_ >> 29;
    b_ = (b_ + word) * 0xd6e8feb86659fd93ull;
    b_ = (b_ << 31) | (b_ >> 33);
  }
  void Add(const Digest& d) {
    Add(d.high);
    Add(d.low);
  }
  Digest Finish() const;

 private:
  std::uint64_t a_ = 0x243f6a8885a308d3ull, b_ = 0x13198a2e03707344ull;  // digits of pi
};

// Hash of a byte string, eight bytes at a time (payloads, serialised tables).
std::uint64_t HashBytes(const void* data, std::size_t size);

}  // namespace percs
