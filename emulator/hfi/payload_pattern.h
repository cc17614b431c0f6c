// Payload of a verified packet: a function of who sends what to whom, so that the receiver can check
// every byte that crossed the links without a copy of it.
#pragma once

#include "emulator/isr/packet.h"

namespace percs {

// Gives the packet its payload. REQUIRES: source, destination, sequence, message and offset are set.
void FillPayload(PacketHeader& header);
// Offset of the first wrong word, or -1. REQUIRES: header.payload.
int CheckPayload(const PacketHeader& header);

}  // namespace percs
