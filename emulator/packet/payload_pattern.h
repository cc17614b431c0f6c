// Payload of a verified packet: a function of who sends what to whom, so that the receiver can
// check every byte that crossed the links without a copy of it.
#pragma once

#include "emulator/packet/packet.h"

namespace percs {

// Words of 8 bytes: word `index` of the content of number `what` from `source` to `destination`.
// For messages, `what` is the number of the message in its flow.
std::uint64_t PatternSeed(NodeId source, NodeId destination, std::uint64_t what);
constexpr std::uint64_t PatternWord(std::uint64_t seed, std::uint64_t index) {
  return seed ^ ((index + 1) * 0x9e3779b97f4a7c15ull);
}

// Gives the packet its payload. REQUIRES: source, destination, sequence, message and offset are
// set.
void FillPayload(PacketHeader& header);
// Offset of the first wrong word, or -1. REQUIRES: header.payload.
int CheckPayload(const PacketHeader& header);

}  // namespace percs
