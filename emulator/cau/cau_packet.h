// Packets of CAUs. Their header rides in the fields that the message layer has in its own packets.
#pragma once

#include <optional>

#include "emulator/cau/cau_port.h"
#include "emulator/packet/packet.h"
#include "emulator/routing/tree_plan.h"

namespace percs {

struct CauHeader {
  enum class Type : std::uint8_t {
    kData,   // one operation
    kAck,    // what has been stored of the other direction, and how far its sender may go
    kGrant,  // the same, after the sender had to stop: wants kGrantSeen, or is sent again
    kGrantSeen,
    kProbe,  // what the participant of `from` says of a reduce it waits for
  };
  Type type = Type::kData;
  CauOperation operation = CauOperation::kReduce;
  CauTreeId tree = 0;
  std::uint32_t generation = 0;
  TreeVertexId from = 0, to = 0;
  std::uint32_t link_sequence = 0;  // data: of the packet on its tree link; else: lowest not stored
  std::uint32_t sequence = 0;       // data, probe: of the operation
  std::uint32_t grant = 0;          // ack, grant: link sequences below it may be sent
  std::uint32_t stored = 0;         // ack, grant: bit i: link_sequence + 1 + i is stored too
  // Data and probes of a reduce.
  NodeId root = kNoNode;
  ReduceOp op = ReduceOp::kNop;
  OperandType operand = OperandType::kInt32;
  std::uint8_t size = 0;  // bytes of operands

  bool reports() const { return type == Type::kAck || type == Type::kGrant; }
  void WriteTo(PacketHeader* h) const {
    h->kind = PacketKind::kCau;
    h->flow_sequence = link_sequence;
    h->flow_base = reports() ? grant : root;
    h->message = reports() ? stored : sequence;
    h->tag = tree | static_cast<std::uint32_t>(type) << 16 |
             static_cast<std::uint32_t>(operation) << 20 | static_cast<std::uint32_t>(op) << 24 |
             static_cast<std::uint32_t>(operand) << 28;
    h->message_bytes =
        generation | static_cast<std::uint64_t>(from) << 32 | static_cast<std::uint64_t>(to) << 48;
    h->offset = size;
    h->message_created = 0;
  }
  // Nothing if it is no header of a CAU packet.
  static std::optional<CauHeader> ReadFrom(const PacketHeader& h) {
    const std::uint32_t type = h.tag >> 16 & 15, operation = h.tag >> 20 & 15,
                        op = h.tag >> 24 & 15, operand = h.tag >> 28;
    if (type > 4 || operation > 1 || op >= kReduceOps || operand >= kOperandTypes ||
        h.offset > kCauPayloadMax || h.bytes > kCauPayloadMax || (h.bytes > 0 && !h.payload)) {
      return std::nullopt;
    }
    CauHeader c;
    c.type = static_cast<Type>(type);
    c.operation = static_cast<CauOperation>(operation);
    c.tree = static_cast<CauTreeId>(h.tag);
    c.generation = static_cast<std::uint32_t>(h.message_bytes);
    c.from = static_cast<TreeVertexId>(h.message_bytes >> 32);
    c.to = static_cast<TreeVertexId>(h.message_bytes >> 48);
    c.link_sequence = h.flow_sequence;
    (c.reports() ? c.stored : c.sequence) = h.message;
    (c.reports() ? c.grant : c.root) = h.flow_base;
    c.op = static_cast<ReduceOp>(op);
    c.operand = static_cast<OperandType>(operand);
    c.size = static_cast<std::uint8_t>(h.offset);
    return c;
  }
};

}  // namespace percs
