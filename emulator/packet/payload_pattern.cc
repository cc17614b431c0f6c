#include "emulator/packet/payload_pattern.h"

#include <algorithm>
#include <cstring>

#include "emulator/base/random.h"

namespace percs {
namespace {

std::uint64_t PayloadWord(const PacketHeader& h, std::uint64_t seed, int word) {
  return PatternWord(seed, h.offset / 8 + static_cast<std::uint64_t>(word));
}
std::uint64_t PayloadSeed(const PacketHeader& h) {
  // Raw packets have no message: their own sequence tells them apart.
  const std::uint64_t what = h.kind == PacketKind::kRaw ? h.sequence : h.message;
  return PatternSeed(h.source, h.destination, what);
}

}  // namespace

std::uint64_t PatternSeed(NodeId source, NodeId destination, std::uint64_t what) {
  return Mix64((static_cast<std::uint64_t>(source) << 32 | destination) ^ Mix64(what));
}

void FillPayload(PacketHeader& header) {
  header.payload = PayloadRef::Make(header.bytes);
  const std::uint64_t seed = PayloadSeed(header);
  for (int w = 0; 8 * w < header.bytes; ++w) {
    const std::uint64_t word = PayloadWord(header, seed, w);
    std::memcpy(header.payload.bytes() + 8 * w, &word, 8);
  }
}

int CheckPayload(const PacketHeader& header) {
  const std::uint64_t seed = PayloadSeed(header);
  for (int w = 0; 8 * w < header.bytes; ++w) {
    const std::uint64_t word = PayloadWord(header, seed, w);
    const int size = std::min(8, header.bytes - 8 * w);
    if (std::memcmp(header.payload.bytes() + 8 * w, &word, static_cast<std::size_t>(size)) != 0)
      return 8 * w;
  }
  return -1;
}

}  // namespace percs
