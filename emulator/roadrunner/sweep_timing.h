// Sweep3D in the timing form: the same messages between the same ranks as SweepOnCml, without local
// stores and without arithmetic, up to the 97,920 SPEs of Roadrunner in one process. Near messages
// take the time of CML's DMAs; far ones go through PPEs, DaCS, Opteron cores and the InfiniBand
// tree, all of which are shared as on real blades. Also the ideal network that takes no time at
// all.
//
// Not modelled: contention on a blade's buses, and slots of a PPE's queue (there are as many as
// SPEs that use it).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "emulator/base/share_observer.h"
#include "emulator/roadrunner/sweep3d.h"

namespace percs::roadrunner {

// Times of CML's steps in one memory, from the blade's parameters.
struct NearCosts {
  explicit NearCosts(const RoadrunnerParameters& parameters);
  Time Put(std::uint64_t bytes, bool across) const;  // until it is complete at its target
  Time Message(std::uint64_t bytes,
               bool across) const;  // from the descriptor's match until the flag is there
  Time get_start, put_start, across, atomic, spin, match, call;
  double chip_rate, across_rate;  // bytes per ns
  // From MPI_Send until the PPE can see the message, from MPI_Recv until it can see the descriptor.
  Time FarSend(std::uint64_t bytes) const;
  Time FarReceive() const;
  Time Get(std::uint64_t bytes) const;
};

struct SweepTimingResult {
  int ranks = 0;
  RankGrid grid;
  Time time = 0;         // until the last rank is through
  Time computation = 0;  // of one rank: all have the same work when tiles are equal; the largest
  std::uint64_t messages = 0, far_messages = 0, network_messages = 0, events = 0;
  IbStats network;
  Digest digest;  // when each rank was through
};

// `tile` cells of each rank: the whole is that times the grid. `ideal`: messages take no time.
absl::StatusOr<SweepTimingResult> SweepTiming(const RoadrunnerParameters& parameters,
                                              const SweepProblem& problem, int ranks, bool ideal,
                                              const ShareObserver& progress = {});

// The weak-scaling problem: 5 x 5 x 400 cells per SPE in 20 blocks (choice: the paper's page is
// missing).
SweepProblem WeakScalingProblem(const RankGrid& grid);

}  // namespace percs::roadrunner
