// The atomic update unit of a hub: ADD, AND, OR, XOR and compare-and-swap on registered memory,
// without the processors (paper 000 section IV-B; mechanisms: fetch or not, 8 to 64 bits, up to
// four packed). It does one update after the other, so an update is indivisible.
#pragma once

#include <vector>

#include "emulator/hfi/nmmu.h"

namespace percs {

// kEmpty, kBadSize, kUnaligned: what no hub would do.
WindowStatus CheckUpdates(const std::vector<AtomicUpdate>& updates);
// The value after, of `update.size` bytes; the pure function behind the unit.
std::uint64_t ApplyUpdate(const AtomicUpdate& update, std::uint64_t before);

// As they are in a packet: kAtomicRecordBytes each.
void WriteUpdates(const std::vector<AtomicUpdate>& updates, std::uint8_t* to);
// Nothing for records that say what cannot be.
std::vector<AtomicUpdate> ReadUpdates(const std::uint8_t* from, int bytes);

class AtomicUnit {
 public:
  AtomicUnit(const WindowParameters& parameters, Nmmu& nmmu)
      : parameters_(parameters), nmmu_(nmmu) {}

  // When updates that are ready at `ready` have been done, behind all that were given before.
  Time Schedule(Time ready, std::size_t updates) {
    free_at_ = std::max(free_at_, ready) + static_cast<Time>(updates) * parameters_.atomic_time;
    return free_at_;
  }
  // Does them in their order, all or none: the status of the first that may not be done. Values
  // before those that fetch are added to `values`.
  WindowStatus Execute(ContextId context, JobKey job, const std::vector<AtomicUpdate>& updates,
                       std::vector<std::uint64_t>* values);

 private:
  const WindowParameters& parameters_;
  Nmmu& nmmu_;
  Time free_at_ = 0;
};

}  // namespace percs
