#include "emulator/packet/payload_pattern.h"

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
  const int words = header.bytes / 8;
  for (int w = 0; w < words; ++w) {
    std::uint64_t word;
    std::memcpy(&word, header.payload.bytes() + 8 * w, 8);
    if (word != PayloadWord(header, seed, w)) return 8 * w;
  }
  const std::uint64_t last = PayloadWord(header, seed, words);
  const auto rest = static_cast<std::size_t>(header.bytes % 8);
  return std::memcmp(header.payload.bytes() + 8 * words, &last, rest) == 0 ? -1 : 8 * words;
}

}  // namespace percs
