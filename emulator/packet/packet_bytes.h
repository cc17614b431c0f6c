// A packet as the documented bytes that captures have (docs/look.md): the fields of its header that
// do not change on its way, then the payload. Little-endian. Fields that the message layer leaves
// to windows, CAUs and management packets are written as they are; their kind says how to read
// them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "emulator/packet/packet.h"

namespace percs {

inline constexpr std::size_t kPacketHeaderBytes = 80;

// Header and payload, if the packet carries one; a packet of synthetic traffic only has its length.
std::string PacketAsBytes(const PacketHeader& header);

const char* PacketKindName(PacketKind kind);  // "raw", "data", "ack", "cau", "management", ...

}  // namespace percs
