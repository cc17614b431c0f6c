// Numbers that no other process has: of fabrics, and of incarnations of daemons.
#pragma once

#include <cstdint>
#include <functional>

namespace percs {

using NumberSource = std::function<std::uint64_t()>;
// Of the machine. THREAD: any.
std::uint64_t RandomNumber();

}  // namespace percs
