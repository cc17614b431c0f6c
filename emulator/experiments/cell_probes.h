// Programs that measure one property of a blade each, as a user would on the hardware.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "emulator/cell/blade.h"

namespace percs::cell {

// Nanoseconds of a signal from SPE 0 to `partner` and back, over many rounds.
double SignalRoundTrip(const BladeParameters& parameters, int partner);
// Nanoseconds of one blocking PUT to a local store on the same Cell.
double DmaTime(const BladeParameters& parameters, std::uint32_t bytes);
// GB/s of streams of `bytes` DMA commands between pairs of SPEs, all together; each pair's
// addresses start `offset` bytes past a multiple of 128.
double StreamRate(const BladeParameters& parameters, const std::vector<std::pair<int, int>>& pairs,
                  std::uint32_t bytes, std::uint32_t offset = 0);
// GB/s that memory delivers into a local store while two SPEs write into it as well.
double MemoryRateAgainstSpes(const BladeParameters& parameters);
// Commands that one MFC takes before its SPE has to wait.
int CommandsBeforeWaiting(const BladeParameters& parameters);
// Messages that an inbound mailbox takes before the writer has to wait.
int MessagesBeforeWaiting(const BladeParameters& parameters);
// Messages that an SPE can leave for its PPE before it has to wait: each outbound mailbox holds
// one.
int OutboundMessages(const BladeParameters& parameters);
// Signal registers that an SPE can read.
int SignalRegisters(const BladeParameters& parameters);
// The largest DMA that no rule forbids.
std::uint32_t LargestDma(const BladeParameters& parameters);

}  // namespace percs::cell
