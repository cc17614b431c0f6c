// What travels: packet headers, and the runs of flits and credits that cross from hub to hub.
#pragma once

#include <cstdint>
#include <vector>

#include "emulator/base/ids.h"
#include "emulator/base/payload.h"
#include "emulator/base/time.h"
#include "emulator/packet/route_mode.h"

namespace percs {

enum class PacketKind : std::uint8_t {
  kRaw,        // no message layer: delivered or dropped, once
  kData,       // part of a message of the reliable message layer
  kAck,        // selective acknowledgement of the message layer, one flit
  kCau,        // between two CAUs (emulator/cau/cau_packet.h), one flit
  kService,    // between two service ports (emulator/node/service_agent.h), one flit
  kWindow,     // between two windows (emulator/hfi/window_packet.h): delivered or dropped, once
  kOperation,  // likewise, by the message layer: exactly once, in any order
};
inline constexpr PacketKind kLastPacketKind = PacketKind::kOperation;

// Why a packet was lost. Every lost packet is counted under exactly one of these.
enum class DropReason : std::uint8_t {
  kLinkDown,        // its link was or went down
  kNoRoute,         // the table has no port for its destination
  kNoVcPosition,    // no position left in L0 D0 L1 D1 L2
  kTruncated,       // arrived with a poison tail
  kDuplicate,       // already received by the message layer
  kNoReplySlot,     // its acknowledgement found no room (rule 16)
  kUnacknowledged,  // messages only: no acknowledgement after the last try
  kTableParity,     // its entry of a route table was damaged
  kCrc,             // a flit of it was corrupted on a link that does not replay
  kNoCauTree,       // the CAU it came to has no such tree, or one that failed
  kNoCauSlot,       // the CAU has no room left for its tree link
  kNoServiceSlot,   // its service port has no room for it
  kServiceTimeout,  // it waited for `service_wait` in one buffer
  kCauDown,         // the CAU it came to does not work
  kWindowDown,      // the window that it came from or to does not work
  kOldIncarnation,  // from or to hubs that were lost, and others are in their place
  kWindowClosed,    // no program has reserved the window that it came to, or not for what it brings
  kWrongKey,        // it came to a window of another job
  kReceiveFifoFull,  // no slot was free in the receive FIFO of its window
  kNoIpReceive,      // a part of an IP datagram for which its window has given no place
  kMalformed,        // its header says what cannot be
};
inline constexpr int kDropReasons = 21;
const char* DropReasonName(DropReason reason);

// What a tail says of its packet beside that it ends.
inline constexpr std::uint8_t kPoisonMark = 1;   // its link died: the packet is not whole (rule 17)
inline constexpr std::uint8_t kCorruptMark = 2;  // a flit was corrupted and not replayed (rule 18)

// What every packet has.
struct BasicHeader {
  NodeId source = 0, destination = 0;
  WindowId source_window = 0, destination_window = 0;
  std::uint16_t bytes = 0;  // payload, 0..2048
  std::uint8_t flits = 1;   // 1..16
  PacketKind kind : 7 = PacketKind::kRaw;
  bool traced : 1 = false;  // its steps are recorded (emulator/metrics/path_trace.h)
  RouteMode mode : 4 = RouteMode::kHwDirect;
  Position position : 4 = kInjected;  // of the link it came over last, as its receivers reckon
  std::uint8_t hops = 0;              // links crossed so far
  std::uint16_t middle = 0;           // middle supernode of an indirect route
  Epoch epoch = 0;                    // tables it was injected under
  std::uint64_t sequence = 0;         // with source: the identifier of the packet
  Time created = 0;                   // when it was handed to the HFI
  std::uint64_t path = 0;             // running hash over (hub, output port)
  PayloadRef payload;
};

// Of the message layer, or the header of a CAU packet; zero for raw packets.
struct MessageHeader {
  std::uint32_t flow_sequence =
      0;                        // data: number of the packet in its flow; ack: lowest not received
  std::uint32_t flow_base = 0;  // data: nothing below this will be sent again
  std::uint32_t message = 0;    // number of the message in its flow
  std::uint32_t tag = 0;
  std::uint64_t message_bytes = 0;
  std::uint64_t offset = 0;  // data: of this packet in its message; ack: bitmap above flow_sequence
  Time message_created = 0;
};

// Rides free with the head flit (header_bytes = 0, docs/semantics.md rule 12).
struct PacketHeader : BasicHeader, MessageHeader {
  // Takes over another one. REQUIRES: the message's part of this one is zero. That of a raw packet
  // is not looked at: it is in another cache line.
  void Assign(const PacketHeader& other) {
    static_cast<BasicHeader&>(*this) = other;
    if (other.kind != PacketKind::kRaw) static_cast<MessageHeader&>(*this) = other;
  }
  void Assign(PacketHeader&& other) {
    if (other.kind != PacketKind::kRaw) static_cast<MessageHeader&>(*this) = other;
    static_cast<BasicHeader&>(*this) = static_cast<BasicHeader&&>(other);
  }
  // What a new raw packet starts with; sender and HFI fill in the rest.
  void ResetRaw() {
    bytes = 0;
    kind = PacketKind::kRaw;
    traced = false;
    mode = RouteMode::kHwDirect;
    position = kInjected;
    hops = 0;
    middle = 0;
    path = 0;
  }
  void ClearMessage() { static_cast<MessageHeader&>(*this) = MessageHeader(); }
};

constexpr int FlitsFor(int bytes) {
  return bytes <= kFlitBytes ? 1 : (bytes + kFlitBytes - 1) / kFlitBytes;
}

// `count` consecutive flits of one packet: flit i becomes eligible at arrival + i * spacing.
struct FlitRun {
  Time arrival = 0;
  Time spacing = 0;
  NodeId node = 0;  // receiver
  PortId port = 0;  // receiver's port
  VcId vc = 0;
  std::uint8_t count = 0;
  std::uint8_t first = 0;        // index of the first flit in its packet; 0 brings the header
  bool tail = false;             // the last of these flits is the packet's tail
  std::uint8_t tail_marks = 0;   // ... with these marks
  std::uint32_t generation = 0;  // of the link
  PacketHeader header;  // always has source, sequence and payload; the rest only if first == 0
};

// `count` free slots: the i-th exists from arrival + i * spacing on.
struct CreditRun {
  Time arrival = 0;
  Time spacing = 0;
  NodeId node = 0;  // receiver: the hub whose output gets the credits
  PortId port = 0;
  VcId vc = 0;
  std::uint16_t count = 0;
  std::uint32_t generation = 0;
};

// The tail of a packet whose flits were already announced turned out to be a poison tail. Arrives
// with the tail itself (docs/semantics.md rule 17).
struct PoisonMark {
  Time arrival = 0;
  NodeId node = 0;
  PortId port = 0;
  VcId vc = 0;
  NodeId source = 0;
  std::uint64_t sequence = 0;
  std::uint32_t generation = 0;
};

}  // namespace percs
