// Seeded random streams, one per component, named by (seed, component path): adding a component
// never shifts another's draws. SplitMix64 seeds xoshiro256**; both are public-domain generators
// (Blackman and Vigna), fixed here because their output is part of the result digest.
#pragma once

#include <cmath>
#include <cstdint>
#include <string_view>

namespace percs {

constexpr std::uint64_t Mix64(std::uint64_t z) {
  z += 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

class RandomStream {
 public:
  RandomStream() : RandomStream(0, "") {}
  RandomStream(std::uint64_t seed, std::string_view component_path) {
    std::uint64_t h = Mix64(seed);
    for (char c : component_path) h = Mix64(h ^ static_cast<unsigned char>(c));
    for (auto& s : state_) s = h = Mix64(h);
  }

  std::uint64_t Next() {
    const std::uint64_t result = Rotl(state_[1] * 5, 7) * 9;
    const std::uint64_t t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = Rotl(state_[3], 45);
    return result;
  }
  // Uniform in [0, bound); bound >= 1. One draw, multiply-shift: bias below 2^-32 for bounds used
  // here.
  std::uint32_t Below(std::uint32_t bound) {
    return static_cast<std::uint32_t>(((Next() >> 32) * static_cast<std::uint64_t>(bound)) >> 32);
  }
  // Uniform in (0, 1].
  double Unit() { return static_cast<double>((Next() >> 11) + 1) * 0x1.0p-53; }

 private:
  static constexpr std::uint64_t Rotl(std::uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }
  std::uint64_t state_[4];
};

}  // namespace percs
