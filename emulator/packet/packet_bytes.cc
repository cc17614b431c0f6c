#include "emulator/packet/packet_bytes.h"

#include <iterator>

namespace percs {
namespace {

template <typename T>
void Append(T value, std::string* out) {
  for (std::size_t i = 0; i < sizeof(T); ++i)
    out->push_back(static_cast<char>(static_cast<std::uint64_t>(value) >> (8 * i)));
}

}  // namespace

std::string PacketAsBytes(const PacketHeader& h) {
  std::string out;
  out.reserve(kPacketHeaderBytes + (h.payload ? h.bytes : 0));
  Append(static_cast<std::uint8_t>(h.kind), &out);
  Append(static_cast<std::uint8_t>(h.mode), &out);
  Append(h.flits, &out);
  Append(static_cast<std::uint8_t>(h.payload ? 1 : 0), &out);
  Append(h.source, &out);
  Append(h.destination, &out);
  Append(h.source_window, &out);
  Append(h.destination_window, &out);
  Append(h.bytes, &out);
  Append(h.middle, &out);
  Append(h.epoch, &out);
  Append(h.sequence, &out);
  Append(h.created, &out);
  Append(h.flow_sequence, &out);
  Append(h.flow_base, &out);
  Append(h.message, &out);
  Append(h.tag, &out);
  Append(h.message_bytes, &out);
  Append(h.offset, &out);
  Append(static_cast<std::uint64_t>(h.message_created), &out);
  if (h.payload) out.append(reinterpret_cast<const char*>(h.payload.bytes()), h.bytes);
  return out;
}

const char* PacketKindName(PacketKind kind) {
  constexpr const char* kNames[] = {"raw",        "data",   "ack",      "cau",
                                    "management", "window", "operation"};
  static_assert(std::size(kNames) == static_cast<std::size_t>(kLastPacketKind) + 1);
  return kNames[static_cast<std::size_t>(kind)];
}

}  // namespace percs
