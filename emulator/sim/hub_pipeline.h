// Runs many hubs one after the other. While one runs, what the next ones will look at is fetched
// into the cache, in steps of which each needs what the one before had fetched.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "emulator/node/hub.h"

namespace percs {

class HubPipeline {
 public:
  // Of so many hubs the hot state fits in the caches: fetching ahead would only cost time.
  static constexpr std::size_t kFewHubs = 128;

  // Hubs to run, in this order; cleared by Run.
  void Add(Hub* hub) { hubs_.push_back(hub); }
  // Runs every event of theirs before `end`. REQUIRES: nothing that one of them does reaches
  // another one before `end`.
  void Run(Time end, bool fetches);

 private:
  static constexpr std::size_t kSteps = 8;
  static constexpr std::size_t kLead =
      kSteps + 1;                                // what the last step fetches takes its time, too
  static constexpr std::size_t kSlots = 16;      // a power of two above kLead
  static constexpr std::size_t kComingMax = 48;  // of a hub in a window; more are not fetched
  struct Slot {
    std::array<Isr::Coming, kComingMax> coming;
    std::size_t count = 0;
  };
  void Fetch(std::size_t step, Hub& hub, Time end, Slot& slot);

  std::vector<Hub*> hubs_;
  std::array<Slot, kSlots> slots_;
};

}  // namespace percs
