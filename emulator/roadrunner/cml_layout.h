// What CML keeps in local stores and main memory, at the same place everywhere (paper 004, Cell
// Messaging Layer): a state for every SPE of the memory domain, and one for all others.
#pragma once

#include <cstdint>

#include "emulator/roadrunner/image.h"
#include "emulator/roadrunner/place.h"

namespace percs::roadrunner {

// What a receiver writes to its sender: 64 bytes, valid when `sequence` is not 0.
struct Descriptor {
  std::uint64_t target = 0;  // effective address; in a PPE's queue: address in the local store
  std::uint32_t bytes = 0;   // room there; of a request to send: bytes to come
  std::int32_t tag = 0;
  Rank from = 0, to = 0;
  std::uint32_t sequence = 0;
  std::uint32_t unused[9] = {};
};
static_assert(sizeof(Descriptor) == 64);

// Set last, by a fenced Put or a PPE's store: the call numbered `sequence` is over.
struct Completion {
  enum Status : std::uint16_t { kDone, kGet, kTruncated, kFailed };
  std::uint32_t sequence = 0;
  std::uint32_t bytes = 0;
  std::int32_t tag = 0;
  std::uint16_t status = kDone, unused = 0;
};
static_assert(sizeof(Completion) == 16);

// In every local store.
inline constexpr cell::LsAddress kInbound = kControl;  // Descriptor by local SPE: its receive
inline constexpr cell::LsAddress kRequests =
    kControl + 0x400;  // Descriptor by local SPE: its request to send
inline constexpr cell::LsAddress kCompletions = kControl + 0x800;  // Completion by local SPE
inline constexpr cell::LsAddress kFarReceive = kControl + 0x900;   // Completion of all others
inline constexpr cell::LsAddress kFarSend = kControl + 0x910;
inline constexpr cell::LsAddress kRpcDone = kControl + 0x920;
inline constexpr cell::LsAddress kStagedDescriptor = kControl + 0x940;
inline constexpr cell::LsAddress kStagedCompletion = kControl + 0x980;
inline constexpr cell::LsAddress kStagedRpc = kControl + 0xa00;  // 256 bytes, arguments in them
inline constexpr cell::LsAddress kRpcResult = kControl + 0xb00;  // 128 bytes
// Pieces of vectors that collectives combine: the own one and one that comes in.
inline constexpr std::uint32_t kPieceBytes = 512;
inline constexpr cell::LsAddress kOwnPiece = kControl + 0xc00;
inline constexpr cell::LsAddress kTheirPiece = kControl + 0xe00;
static_assert(kTheirPiece + kPieceBytes == kControl + kControlBytes);

inline constexpr int kCmlTag = 31;                  // DMA tag of CML
inline constexpr std::uint32_t kRpcBytesMax = 128;  // of arguments, and of results

// In the half of main memory of each Cell: counters, queues, buffers of the PPE's CML process.
struct PpeLayout {
  PpeLayout(const RoadrunnerParameters& p, int cell_on_blade)
      : base(p.blade.memory_bytes / cell::kCells * static_cast<std::uint64_t>(cell_on_blade)),
        slot_bytes(p.cml.slot_bytes),
        slots(static_cast<std::uint64_t>(p.cml.send_slots)) {}
  // Word of a queue: bit s, slot s is taken.
  std::uint64_t Taken(int queue) const { return base + 0x80 * static_cast<std::uint64_t>(queue); }
  std::uint64_t Receive(std::uint32_t slot) const {
    return base + 0x30000 + 0x80 * std::uint64_t{slot};
  }
  std::uint64_t Rpc(int spe) const {
    return base + 0x40000 + 0x100 * static_cast<std::uint64_t>(spe);
  }
  // Header, then data.
  std::uint64_t Send(std::uint32_t slot) const {
    return base + 0x100000 + slot * (slot_bytes + 0x80);
  }
  std::uint64_t SendData(std::uint32_t slot) const { return Send(slot) + 0x80; }
  // Where a message waits for the SPE that gets it: it receives one at a time.
  std::uint64_t Landing(int spe) const {
    return base + 0x100000 + slots * (slot_bytes + 0x80) +
           static_cast<std::uint64_t>(spe % cell::kSpesPerCell) * slot_bytes;
  }
  std::uint64_t Heap() const { return Landing(0) + cell::kSpesPerCell * slot_bytes; }

  std::uint64_t base, slot_bytes, slots;
};
inline constexpr int kSendQueue = 0, kReceiveQueue = 1;
inline constexpr int kSlotsMax = 32;  // of a queue

}  // namespace percs::roadrunner
