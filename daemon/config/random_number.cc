#include "daemon/config/random_number.h"

#include <random>

namespace percs {

std::uint64_t RandomNumber() {
  std::random_device device;
  return (static_cast<std::uint64_t>(device()) << 32) | device();
}

}  // namespace percs
