// The three legs of a message between Cells that share no memory: DaCS from the PPE to its Opteron
// core over PCIe, MPI to the other Opteron core, DaCS to the other PPE. Each is one transfer, begun
// when the one before it has ended: they never overlap (paper 004, Primitive performance). Used by
// programs on real blades and by the timing form alike.
//
// Of a layer's latency each end's processor is busy for its overhead: the PPE's is charged by
// its caller, an Opteron core's here, transfers one after another. PCIe, the adapter and
// InfiniBand are shared as well.
//
// Not modelled: HyperTransport and the HT2100 bridges, which carry more than the PCIe behind them.
#pragma once

#include <vector>

#include "emulator/roadrunner/ib_network.h"
#include "emulator/roadrunner/place.h"

namespace percs::roadrunner {

struct HostStats {
  std::uint64_t dacs = 0, dacs_bytes = 0, mpi_shared = 0, mpi_network = 0, mpi_bytes = 0;
};

class HostPath {
 public:
  HostPath(const RoadrunnerParameters& parameters, IbTree tree);

  IbNetwork& network() { return network_; }
  const HostStats& stats() const { return stats_; }

  // `cell` is of the machine. Each call comes when its step begins, and gives when what it moves is
  // there. DaCS: the PPE has given the bytes to it, after its overhead; until they are at the
  // Opteron.
  Time DacsUp(int cell, std::uint64_t bytes, Time now);
  // The Opteron core takes them and sends them on by MPI, to the core of another Cell. UNAVAILABLE:
  // there is no way through the network.
  absl::StatusOr<Time> Mpi(int from_cell, int to_cell, std::uint64_t bytes, Time now);
  // The same for the adapter of another network; until that has them.
  Time GiveToAdapter(int cell, Time now) {
    return TakeCore(cell, parameters_.dacs.overhead + parameters_.mpi.overhead, now);
  }
  // DaCS put and get of the PPE, between its memory and its Opteron core's: no program at the other
  // end receives or sends, so that processor has no overhead. A put ends with the answer that the
  // bytes are there; a get asks first, so each takes the flight twice (choice: the flight is that
  // of send and receive).
  Time DacsFlight() const { return parameters_.dacs.latency - 2 * parameters_.dacs.overhead; }
  // Until the bytes of a put are in place, and until those of a get, asked for `DacsFlight()`
  // before, are.
  Time DacsPut(int cell, std::uint64_t bytes, Time now) { return DacsUp(cell, bytes, now); }
  Time DacsGet(int cell, std::uint64_t bytes, Time now) { return Down(cell, bytes, now); }
  // The other core takes them and gives them to DaCS; until they are at the PPE, before its
  // overhead.
  Time DacsDown(int from_cell, int to_cell, std::uint64_t bytes, Time now);
  // The Opteron core takes a call, runs its function for `time` and gives `bytes` of results to
  // DaCS; likewise.
  Time Call(int cell, Time time, std::uint64_t bytes, Time now);

 private:
  Time TakeCore(int cell, Time overhead, Time now);
  Time Down(int cell, std::uint64_t bytes, Time now);

  const RoadrunnerParameters parameters_;
  IbNetwork network_;
  Time mpi_flight_ = 0;  // of the latency between two triblades, neither overhead nor network
  std::vector<Time> core_free_, up_free_, down_free_;  // by Cell
  HostStats stats_;
};

}  // namespace percs::roadrunner
