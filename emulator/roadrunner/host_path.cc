#include "emulator/roadrunner/host_path.h"

#include <algorithm>
#include <utility>

namespace percs::roadrunner {
namespace {

// The published latency is that between triblades on one crossbar.
Time OneCrossbar(const InfinibandParameters& ib) { return 2 * ib.cable + ib.crossbar; }

Time Transfer(Time& free, std::uint64_t bytes, double rate, Time now) {
  now = std::max(now, free);
  return free = now + TransferTime(bytes, rate);
}

}  // namespace

HostPath::HostPath(const RoadrunnerParameters& parameters, IbTree tree)
    : parameters_(parameters), network_(std::move(tree), parameters.infiniband) {
  const auto cells = static_cast<std::size_t>(network_.tree().triblades() * kCellsPerTriblade);
  core_free_.resize(cells);
  up_free_.resize(cells);
  down_free_.resize(cells);
  const LayerParameters& mpi = parameters.mpi;
  mpi_flight_ =
      std::max<Time>(0, mpi.latency - 2 * mpi.overhead - OneCrossbar(parameters.infiniband));
}

Time HostPath::TakeCore(int cell, Time overhead, Time now) {
  Time& free = core_free_[static_cast<std::size_t>(cell)];
  return free = std::max(now, free) + overhead;
}

Time HostPath::DacsUp(int cell, std::uint64_t bytes, Time now) {
  const LayerParameters& dacs = parameters_.dacs;
  ++stats_.dacs;
  stats_.dacs_bytes += bytes;
  return Transfer(up_free_[static_cast<std::size_t>(cell)], bytes, dacs.bytes_per_ns, now) +
         dacs.latency - 2 * dacs.overhead;
}

Time HostPath::Down(int cell, std::uint64_t bytes, Time now) {
  const LayerParameters& dacs = parameters_.dacs;
  ++stats_.dacs;
  stats_.dacs_bytes += bytes;
  return Transfer(down_free_[static_cast<std::size_t>(cell)], bytes, dacs.bytes_per_ns, now) +
         dacs.latency - 2 * dacs.overhead;
}

absl::StatusOr<Time> HostPath::Mpi(int from_cell, int to_cell, std::uint64_t bytes, Time now) {
  const int from = from_cell / kCellsPerTriblade, to = to_cell / kCellsPerTriblade;
  const Time taken = TakeCore(from_cell, parameters_.dacs.overhead, now);
  stats_.mpi_bytes += bytes;
  if (from == to) {
    const LayerParameters& shared = parameters_.mpi_shared;
    ++stats_.mpi_shared;
    const Time copied =
        TakeCore(from_cell, shared.overhead + TransferTime(bytes, shared.bytes_per_ns), taken);
    return copied + shared.latency - 2 * shared.overhead;
  }
  ++stats_.mpi_network;
  const Time given = TakeCore(from_cell, parameters_.mpi.overhead, taken);
  return network_.Send(from, to, bytes, given + mpi_flight_);
}

Time HostPath::DacsDown(int from_cell, int to_cell, std::uint64_t bytes, Time now) {
  const bool shared = from_cell / kCellsPerTriblade == to_cell / kCellsPerTriblade;
  const Time overhead = shared ? parameters_.mpi_shared.overhead : parameters_.mpi.overhead;
  return Down(to_cell, bytes, TakeCore(to_cell, overhead + parameters_.dacs.overhead, now));
}

Time HostPath::Call(int cell, Time time, std::uint64_t bytes, Time now) {
  return Down(cell, bytes, TakeCore(cell, 2 * parameters_.dacs.overhead + time, now));
}

}  // namespace percs::roadrunner
