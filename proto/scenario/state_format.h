// Version of a controller's database (daemon/controller/state_store.h). Older ones are read, newer
// ones refused.
#pragma once

#include <cstdint>

namespace percs {

inline constexpr std::uint32_t kStateFormat = 5;

}  // namespace percs
