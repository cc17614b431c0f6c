// Sweep3D in the accelerator model (paper 004, section Sweep3D, after Petrini et al.): all data lie
// in main memory, the PPE farms I lines out to the SPEs of one Cell, an SPE gets a line and what it
// depends on, sweeps it, and puts it back. No SPE speaks to another one. Lines of one diagonal of a
// block's J-K plane are independent; the PPE waits for all of them before the next one.
#pragma once

#include "emulator/roadrunner/sweep3d.h"

namespace percs::roadrunner {

struct AcceleratorResult {
  Flux flux;
  Time time = 0;
  Time dma = 0;  // of the SPE that waits for DMA longest
  std::uint64_t lines = 0;
  std::uint64_t dma_bytes = 0;
};

// With real data. Widths must be even, as a line moves in multiples of 16 bytes (INVALID_ARGUMENT).
absl::StatusOr<AcceleratorResult> SweepOnAccelerator(const cell::BladeParameters& parameters,
                                                     const SweepProblem& problem);

}  // namespace percs::roadrunner
