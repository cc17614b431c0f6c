// Headers of the packets between ranks, and the numbers of their operations. Numbers in memory are
// little-endian, as everywhere in this emulator.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "client/mpi/transport.h"

namespace percs::mpi {

// What an operation of a window was for; in its id.
enum class OperationUse : std::uint8_t { kOther, kPacket, kRead, kReadBytes };
constexpr std::uint64_t OperationId(OperationUse use, std::uint64_t number) {
  return static_cast<std::uint64_t>(use) << 56 | number;
}
constexpr OperationUse UseOf(std::uint64_t id) { return static_cast<OperationUse>(id >> 56); }
constexpr std::uint64_t NumberOf(std::uint64_t id) { return id & ((std::uint64_t{1} << 56) - 1); }

struct Transport::Header {
  PacketType type = PacketType::kAck;
  std::uint32_t sequence = 0;                   // in its flow; kAck has none
  std::uint32_t ack = 0;                        // what is below has been received
  std::uint64_t tag = 0, data = 0, length = 0;  // kEager, kRequest
  std::uint64_t address = 0;                    // kRequest
  std::uint32_t transfer = 0;                   // kRequest, kFinish

  static constexpr std::size_t kBase = 12;
  static std::size_t BytesOf(PacketType type) {
    switch (type) {
      case PacketType::kEager:
        return kBase + 20;
      case PacketType::kRequest:
        return kBase + 36;
      case PacketType::kFinish:
        return kBase + 4;
      default:
        return kBase;
    }
  }

  std::vector<std::uint8_t> Write() const {
    std::vector<std::uint8_t> bytes(BytesOf(type));
    std::uint8_t* to = bytes.data();
    const auto put = [&to](const void* from, std::size_t count) {
      std::memcpy(to, from, count);
      to += count;
    };
    const std::uint32_t kind = static_cast<std::uint32_t>(type);
    put(&kind, 4), put(&sequence, 4), put(&ack, 4);
    if (type == PacketType::kEager) put(&tag, 8), put(&data, 8), put(&length, 4);
    if (type == PacketType::kRequest)
      put(&tag, 8), put(&data, 8), put(&length, 8), put(&address, 8), put(&transfer, 4);
    if (type == PacketType::kFinish) put(&transfer, 4);
    return bytes;
  }
  // False if these are no packet of a transport.
  bool Read(const std::vector<std::uint8_t>& bytes) {
    if (bytes.size() < kBase) return false;
    const std::uint8_t* from = bytes.data();
    const auto get = [&from](void* to, std::size_t count) {
      std::memcpy(to, from, count);
      from += count;
    };
    std::uint32_t kind = 0;
    get(&kind, 4), get(&sequence, 4), get(&ack, 4);
    if (kind > static_cast<std::uint32_t>(PacketType::kAck)) return false;
    type = static_cast<PacketType>(kind);
    if (bytes.size() < BytesOf(type)) return false;
    if (type == PacketType::kEager) get(&tag, 8), get(&data, 8), get(&length, 4);
    if (type == PacketType::kRequest)
      get(&tag, 8), get(&data, 8), get(&length, 8), get(&address, 8), get(&transfer, 4);
    if (type == PacketType::kFinish) get(&transfer, 4);
    return true;
  }
  // Of a packet that was written before.
  static void SetNumbers(std::uint32_t sequence, std::uint32_t ack,
                         std::vector<std::uint8_t>* packet) {
    std::memcpy(packet->data() + 4, &sequence, 4);
    std::memcpy(packet->data() + 8, &ack, 4);
  }
};

}  // namespace percs::mpi
