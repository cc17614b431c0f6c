// The timeline of one reroute, as network management saw it.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "emulator/base/ids.h"
#include "emulator/base/time.h"
#include "emulator/topology/topology.h"

namespace percs {

// The first alert of one place.
struct AlertTimes {
  Time raised = kNever;   // at the hub
  Time alerted = kNever;  // its arrival at network management
};

struct Reroute {
  Epoch epoch = 0;
  std::vector<LinkEnd> down, up;  // links whose alerts this plan answers, each by its lower end
  std::vector<NodeId> damaged;    // hubs whose tables it writes again, for a damaged entry
  std::vector<AlertTimes> down_alerts, damaged_alerts;  // of each of these
  Time raised = 0;                                      // first alert, at the hub
  Time alerted = 0;                                     // its arrival at network management
  Time planning_started = 0, planned = 0;
  Time committed = 0;  // at every hub
  Time first_packet =
      kNever;  // earliest NodeResult::first_rerouted of this epoch; filled on merging
  std::uint32_t hubs_changed = 0;  // hubs whose tables differ from before
  std::uint64_t unreachable_pairs = 0;
};

// When a hub first routed by what an epoch changed, by epoch.
inline void NoteFirstPackets(const std::vector<std::pair<Epoch, Time>>& first_rerouted,
                             std::vector<Reroute>* reroutes) {
  for (const auto& [epoch, time] : first_rerouted) {
    for (Reroute& reroute : *reroutes) {
      if (reroute.epoch == epoch && time < reroute.first_packet) reroute.first_packet = time;
    }
  }
}

// The outcome of a table set that was loaded from outside.
struct LoadedRoutes {
  Epoch epoch = 0;
  Time committed = 0;  // when every hub switches
  std::uint32_t hubs_changed = 0;
  std::uint64_t unreachable_pairs = 0;
};

}  // namespace percs
