// Parameters of a dual-Cell blade, one set per blade type. docs/cell.md says of each where it comes
// from: published, calibrated on a published figure, or a choice. Times in picoseconds.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "emulator/base/time.h"

namespace percs::cell {

inline constexpr int kCells = 2;  // Cell chips of a blade
inline constexpr int kSpesPerCell = 8;
inline constexpr int kSpes = kCells * kSpesPerCell;
inline constexpr std::uint32_t kLocalStoreBytes = 256 * 1024;
inline constexpr std::uint32_t kDmaBytesMax = 16 * 1024;
inline constexpr int kLineBytes = 128;  // one EIB transfer
inline constexpr int kBeatBytes = 16;   // one bus cycle of a ring
inline constexpr int kTags = 32;        // tag groups of an MFC

struct EibParameters {
  Time cycle = 625;        // 1.6 GHz, half the core clock
  int start_interval = 3;  // cycles between two starts on one ring
  int transfers_per_ring = 3;
  int hops_max = 6;  // half the ring
};

struct ChipLinkParameters {
  Time line_time = 6'400;  // 128 bytes in one direction
  // 128 bytes of DMA of one MFC, whatever else the link carries. Calibrated: broadcasts of 38.33
  // and 25 GB/s.
  Time single_line_time = 30'000;
  Time latency = 225'100;  // calibrated: inter-chip signal round trip 619.4 ns
  int buffer_lines = 16;   // room for lines that wait for the link, per direction
};

struct BladeParameters {
  std::string type = "QS20";
  std::uint64_t memory_bytes = std::uint64_t{1} << 30;  // half of it at each Cell
  EibParameters eib;
  ChipLinkParameters link;

  // The MFC.
  Time issue = 3'125;         // the SPU writes a command into its channels: below 4 ns
  Time command = 28'125;      // the MFC accepts one command after another: near peak from 1 KiB
  Time list_element = 3'125;  // it fetches one list element
  Time coherence = 12'500;    // command phase and snoop, before data may move
  Time dma_done = 30'000;     // from the last beat to the tag status: 128 bytes below 100 ns
  Time tag_status = 15'000;   // the SPU reads the tag status once it is there
  int queue_depth = 16;       // commands per MFC, 128 per Cell

  // Signals, mailboxes, atomics, memory.
  Time signal_set = 23'800;       // calibrated: intra-chip signal round trip 160.1 ns
  Time signal_read = 10'000;      // the SPU reads and tests a register
  int mailbox_depth = 4;          // inbound; the outbound ones hold one entry each
  Time mailbox_access = 10'000;   // the SPU's side of its own mailboxes
  Time mailbox_send = 300'000;    // an SPE writes another's inbound mailbox
  Time ppe_access = 1'500'000;    // the PPE reads or writes a mailbox or signal register of an SPE
  Time memory_latency = 50'000;   // of the memory itself, beyond the bus
  Time atomic_travel = 225'000;   // to the memory, and back
  Time atomic_service = 150'000;  // how long one operation holds its cache line

  // What a collective's program spends, beside the commands themselves, each time it deals with one
  // partner: finds its bit among those that came, starts its DMA, or signals it.
  Time software_partner = 25'000;
  // SIMD combine of 16 bytes, each one after the last: load, operation and store of 6 core cycles
  // each, and a branch (latencies of the SPU in IBM's Cell Broadband Engine Programming Handbook).
  Time combine_vector = 5'938;
  // Around that loop: its last branch and the return, which no hint covers, 18 core cycles each
  // (the SPU predicts no branch by itself; same source).
  Time combine_call = 11'250;
};

// Types: "QS20", "QS21", "QS22". INVALID_ARGUMENT names them for any other.
absl::StatusOr<BladeParameters> ParametersOfBlade(std::string_view type);

// INVALID_ARGUMENT names the first value the machine cannot be built with.
absl::Status CheckBladeParameters(const BladeParameters& parameters);

}  // namespace percs::cell
