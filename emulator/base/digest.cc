#include "emulator/base/digest.h"

#include <cstring>

#include "emulator/base/random.h"
#include "fmt/format.h"

namespace percs {

std::string Digest::ToString() const { return fmt::format("{:016x}{:016x}", high, low); }

Digest DigestStream::Finish() const { return {Mix64(a_ ^ Mix64(b_)), Mix64(b_ + Mix64(a_))}; }

std::uint64_t HashBytes(const void* data, std::size_t size) {
  const auto* bytes = static_cast<const unsigned char*>(data);
  std::uint64_t h = 0x243f6a8885a308d3ull ^ size;
  for (; size >= 8; bytes += 8, size -= 8) {
    std::uint64_t word;
    std::memcpy(&word, bytes, 8);  // little-endian hosts only, as Debian's amd64 and arm64 are
    h = (h ^ word) * 0x9fb21c651e98df25ull;
    h ^= h >> 32;
  }
  std::uint64_t tail = 0;
  if (size > 0) std::memcpy(&tail, bytes, size);  // no bytes may have no address
  return Mix64(h ^ tail);
}

}  // namespace percs
