// Parameters of Roadrunner (paper 004): triblades, the layers that carry data between their
// processors, and the InfiniBand tree. docs/roadrunner.md says of each where it comes from:
// published, calibrated on a published figure, or a choice. Times in picoseconds.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "emulator/base/time.h"
#include "emulator/cell/blade_parameters.h"

namespace percs::roadrunner {

inline constexpr int kBladesPerTriblade = 2;
inline constexpr int kCellsPerTriblade =
    kBladesPerTriblade * cell::kCells;  // one Opteron core each
inline constexpr int kSpesPerTriblade = kBladesPerTriblade * cell::kSpes;

// A layer that moves data between two processors: it takes `overhead` of both, and `latency` in all
// for a message of no bytes.
struct LayerParameters {
  Time latency = 0;
  Time overhead = 0;  // part of the latency that each end's processor is busy
  double bytes_per_ns = 2;
};

struct InfinibandParameters {
  double bytes_per_ns = 2;          // 4X DDR, each way (RR-027)
  Time crossbar = 160'000;          // a head passes one: choice, middle of 140 to 200 ns (gaps.md)
  Time cable = 25'000;              // choice: 5 m of copper
  Time retry = 100 * kMicrosecond;  // a source sends again what a dead cable or crossbar swallowed
  Time sweep = 10 * kMillisecond;   // from a failure to new forwarding tables
};

struct CmlParameters {
  int tags = 16;       // user tags 0 to tags - 1: an option when CML is built
  int send_slots = 8;  // of each PPE
  int receive_slots = 8;
  std::uint32_t slot_bytes = 256 * 1024;  // in main memory
  std::uint32_t copy_bytes_max = 128;  // the PPE copies up to this, beyond it the SPE gets (RR-036)
  Time call = 60'000;                  // an SPE enters an MPI function
  Time spin = 20'000;                  // an SPE's loop finds the flag it spins on
  Time match = 40'000;                 // an SPE reads and compares one descriptor
  // From a flag in main memory until the PPE has found and handled it. Calibrated on 11.77 us.
  Time ppe_handle = 365'000;
  Time ppe_store = 100'000;  // the PPE writes up to 128 bytes into a local store
  int mem_domain_cells = 2;  // MPI_COMM_MEM_DOMAIN: one Cell, or both of a blade
};

struct RoadrunnerParameters {
  cell::BladeParameters blade;  // QS22
  // DaCS between a PPE and its Opteron core, over PCIe x8 (RR-025). The sum 2 x DaCS + MPI = 9.24
  // us is calibrated; how it is split is a choice within gaps.md G13.
  LayerParameters dacs{3'540'000, 1'000'000, 2.0};
  // MPI between Opteron cores of two triblades on one crossbar, and of one triblade (choice).
  LayerParameters mpi{2'160'000, 700'000, 2.0};
  LayerParameters mpi_shared{1'000'000, 400'000, 1.25};
  InfinibandParameters infiniband;
  CmlParameters cml;
};

// The machine of the paper: QS22 blades.
RoadrunnerParameters DefaultParameters();

// INVALID_ARGUMENT names the first value the machine cannot be built with.
absl::Status CheckParameters(const RoadrunnerParameters& parameters);

// Time that `bytes` take at a rate, rounded up.
inline Time TransferTime(std::uint64_t bytes, double bytes_per_ns) {
  return static_cast<Time>(static_cast<double>(bytes) * 1000.0 / bytes_per_ns + 0.999);
}

}  // namespace percs::roadrunner
