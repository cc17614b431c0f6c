// Version of the machine's model. Raised whenever the digest of some scenario may change; processes
// with different models refuse to work together.
#pragma once

#include <cstdint>

namespace percs {

inline constexpr std::uint32_t kModelVersion = 18;

}  // namespace percs
