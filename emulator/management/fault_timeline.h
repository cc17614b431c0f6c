// How one fault was answered: when the hubs noticed it, when network management heard of it,
// planned and committed new routes, and when the first packet took one. Network management answers
// alerts and knows no faults, so this is put together afterwards, from its reroutes and the places
// of the fault.
#pragma once

#include <vector>

#include "emulator/management/fault_service.h"
#include "emulator/management/reroute.h"

namespace percs {

struct FaultTimeline {
  // Each kNever as long as it has not happened.
  Time detected = kNever;  // first alert of one of its places, at the hub
  Time alerted = kNever;   // its arrival at network management
  Time planned = kNever, committed = kNever;
  Time first_packet = kNever;  // routed by an entry that changed
  Epoch epoch = 0;             // of the reroute; 0: none
};

// Of the last time that the fault began. `reroutes` in order.
FaultTimeline TimelineOf(const FaultStatus& fault, const std::vector<Reroute>& reroutes,
                         const Topology& topology);

}  // namespace percs
