// Packets between two windows. Their header rides in the fields that the message layer has in its
// own packets; packets of kind kOperation leave it those it needs (emulator/hfi/message_layer.h).
#pragma once

#include <optional>

#include "emulator/hfi/message_layer.h"
#include "emulator/scenario/window_operation.h"

namespace percs {

inline constexpr int kAtomicRecordBytes = 32;  // an update in a packet: four fill a cache line
static_assert(kPackedAtomicsMax * kAtomicRecordBytes == kCacheLineBytes);

struct WindowPacket {
  enum class Type : std::uint8_t {
    // Unreliable.
    kImmediate,
    kFifo,
    kIp,          // a datagram in one packet, into the receive FIFO
    kIpFragment,  // a part of one, which the HFI assembles
    // Exactly once.
    kWrite,         // to memory
    kWriteFifo,     // to the receive FIFO
    kRead,          // asks for `length` bytes
    kReadData,      // some of them
    kAtomic,        // updates
    kAtomicAnswer,  // values of those that fetch
    kAnswer,        // of a write that is done, or of anything that failed
    kProgress,  // of a write into a device: `length` bytes have arrived, and no more than that may
                // be on their way
  };
  static constexpr int kTypes = 12;
  Type type = Type::kImmediate;
  WindowStatus status = WindowStatus::kOk;  // answers
  bool notify = false;
  bool at_once = false;  // acknowledged when it comes
  JobKey job = 0;
  ContextId context = 0;      // of `address`
  std::uint32_t request = 0;  // number of the operation at the hub that asked; IP: of the datagram
  Address address = 0;        // IP: offset in the datagram
  std::uint32_t length = 0;   // of the whole operation or datagram; kRead: of this part

  bool reliable() const { return type >= Type::kWrite; }
  bool answers() const { return type == Type::kReadData || type >= Type::kAtomicAnswer; }

  void WriteTo(PacketHeader* h) const {
    h->kind = reliable() ? PacketKind::kOperation : PacketKind::kWindow;
    h->tag = request;
    h->offset = address;
    h->message_bytes =
        length | static_cast<std::uint64_t>(context) << 32 | static_cast<std::uint64_t>(job) << 48;
    h->message_created = (at_once ? kAcknowledgeAtOnce : 0) | static_cast<Time>(type) << 8 |
                         static_cast<Time>(status) << 16 | static_cast<Time>(notify ? 1 : 0) << 24;
  }
  static Type TypeOf(std::uint64_t message_created) {
    return static_cast<Type>(message_created >> 8 & 0xff);
  }
  // Nothing if it is no header of a window's packet, or the bytes are not what its type has.
  static std::optional<WindowPacket> ReadFrom(const PacketHeader& h) {
    const auto word = static_cast<std::uint64_t>(h.message_created);
    const std::uint64_t type = word >> 8 & 0xff, status = word >> 16 & 0xff;
    if (type >= kTypes || status >= kWindowStatuses || word >> 25 != 0 ||
        (h.bytes > 0 && !h.payload)) {
      return std::nullopt;
    }
    WindowPacket p;
    p.type = static_cast<Type>(type);
    p.status = static_cast<WindowStatus>(status);
    p.at_once = word & kAcknowledgeAtOnce;
    p.notify = word >> 24 & 1;
    p.job = static_cast<JobKey>(h.message_bytes >> 48);
    p.context = static_cast<ContextId>(h.message_bytes >> 32);
    p.length = static_cast<std::uint32_t>(h.message_bytes);
    p.request = h.tag;
    p.address = h.offset;
    if (p.reliable() != (h.kind == PacketKind::kOperation) || !p.BytesFit(h.bytes))
      return std::nullopt;
    return p;
  }

 private:
  bool BytesFit(int bytes) const {
    switch (type) {
      case Type::kImmediate:
        return bytes <= kImmediateBytesMax;
      case Type::kIpFragment:
        return bytes > 0 && length <= kIpBytesMax && address % kPacketBytesMax == 0 &&
               address < length && address + static_cast<Address>(bytes) <= length;
      case Type::kWrite:
      case Type::kWriteFifo:
      case Type::kReadData:
        return bytes > 0;
      case Type::kRead:
        return bytes == 0 && length > 0;
      case Type::kAnswer:
      case Type::kProgress:
        return bytes == 0;
      case Type::kAtomic:
        return bytes > 0 && bytes % kAtomicRecordBytes == 0 && bytes <= kCacheLineBytes;
      case Type::kAtomicAnswer:
        return bytes % 8 == 0 && bytes <= 8 * kPackedAtomicsMax;
      case Type::kFifo:
      case Type::kIp:
        return true;
    }
    return false;
  }
};

}  // namespace percs
