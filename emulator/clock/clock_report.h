// How well the clocks of all hubs agreed.
#pragma once

#include <string>
#include <vector>

#include "emulator/clock/hub_clock.h"

namespace percs {

// At every multiple of the period up to the end of the run, over the hubs that are synchronised:
// set within the last period, all by the same source.
struct ClockReport {
  bool on = false;
  ClockSettings settings;
  std::uint64_t samples = 0;    // multiples of the period that were looked at
  std::uint64_t steady = 0;     // of them, those with one source for all synchronised hubs
  Time skew_max = 0;            // steady: most between two synchronised hubs
  double skew_mean_ps = 0;      // ... and the mean of the samples' most
  Time bound = 0;               // what skew_max cannot exceed
  std::uint32_t depth_max = 0;  // links from the source
  Time skew_max_ever = 0;       // also of hubs that were not, or by two sources: holding over
  Time age_max = 0;             // longest since a clock was set
  std::vector<NodeId> sources;  // one after the other
  std::uint64_t synchronised = 0, hubs = 0;  // at the last sample
};

// `samples` by hub, each from the first period on; `end`: of the run. `delay_max`: longest of a
// symbol over a link.
ClockReport ReportClocks(const ClockSettings& settings, Time delay_max, Time end,
                         const std::vector<const std::vector<ClockSample>*>& samples);

}  // namespace percs
