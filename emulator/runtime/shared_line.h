// A cache line that tasks of one node share: a counter that only grows and the small record beside
// it (128 bytes on POWER7). What it costs is the coherence protocol: who reads it after a write
// waits for the line to come from the writer's core; a line serves such readers one after the
// other, and a thread has its misses one after the other, overlapped but for `line_repeat`. A
// reader that waits polls its own copy.
//
// Not modelled: false sharing, and lines that leave a cache for want of room.
#pragma once

#include <bitset>
#include <cstdint>
#include <vector>

#include "emulator/base/time.h"
#include "emulator/runtime/rank.h"
#include "emulator/scenario/host_parameters.h"

namespace percs {

class SharedLine {
 public:
  std::uint64_t counter() const { return counter_; }
  // `rank` reads the line; *ready_at is moved to when it has it.
  void Read(Rank& rank, Time* ready_at);
  // `rank` has written record and counter, now.
  void Advance(Rank& rank);
  // What an atomic operation of `rank` waits for: the line, unless its own core alone has it.
  Time ClaimTime(Rank& rank) const;
  // Wakes `rank` at the next write.
  void Watch(Rank& rank) {
    if (!watching_[rank.local()]) watchers_.push_back(&rank);
    watching_.set(rank.local());
  }

 private:
  std::uint64_t counter_ = 0;
  int core_ = 0;          // of the last writer
  bool written_ = false;  // ever
  Time free_at_ = 0;      // serves the next reader
  std::bitset<kTasksPerNodeMax> copies_, watching_;
  std::vector<Rank*> watchers_;
};

}  // namespace percs
