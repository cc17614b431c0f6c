// An outbox as bytes: what crosses between processes. Little-endian base-128 numbers, times
// relative to the batch's earliest; the layout is docs/protocol.md. Input from a peer is never
// trusted: every number is checked before it is used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "emulator/wire/outbox.h"

namespace percs {

// Batches up to this size go with reports and grants: another message between two daemons costs
// more than some kilobytes in these.
inline constexpr std::size_t kCarriedBytesMax = 4'096;

// Appends the whole outbox to `out`.
void EncodeOutbox(const Outbox& outbox, std::string* out);

// Reads the batches of one peer, in order. Keeps the payload blocks of packets whose flits come in
// several runs, so that all runs of a packet share one block, as they do inside one process.
class OutboxDecoder {
 public:
  // At most this number of packets may be open at a time: VCs of the links between the two
  // processes.
  explicit OutboxDecoder(std::size_t open_packets_max) : open_packets_max_(open_packets_max) {}

  // Appends to `outbox`. INVALID_ARGUMENT names the part and its byte offset; `outbox` is then of
  // no use, nor is this decoder.
  absl::Status Decode(absl::Span<const std::uint8_t> bytes, Outbox* outbox);

  std::size_t open_packets() const { return open_.size(); }

 private:
  friend class BatchReader;
  struct OpenPacket {
    NodeId source = 0;
    std::uint64_t sequence = 0;
    PayloadRef payload;
  };
  std::size_t open_packets_max_;
  absl::flat_hash_map<std::uint64_t, OpenPacket> open_;  // by (node, port, VC)
};

}  // namespace percs
