// Hubs whose process is gone (docs/semantics.md rule 21). What such a process had not sent is lost with it, so the
// hubs stop at the end of the window in which that was noticed, count for nothing from then on, and the links to them
// are down.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "emulator/base/time.h"
#include "emulator/fault/fault_action.h"
#include "emulator/topology/topology.h"

namespace percs {

// What hubs sent from a virtual time on, and nobody has got: not the flits, credits and symbols for hubs of `to`, and
// not what was meant for network management.
struct SeveredHubs {
  std::vector<NodeId> from, to;
  bool management = false;
};

struct LostHubs {
  std::vector<NodeId> nodes;
  std::string who;            // for people: the process
  std::uint32_t number = 0;   // of the loss, from 1
  Time at = 0;
};

// A loss holds the links of its hubs down as a fault of this number would.
inline constexpr std::uint32_t kLossNumbers = 0xffff0000u;

// One for each link of the hubs.
std::vector<FaultAction> ActionsOf(const LostHubs& lost, const Topology& topology);

}  // namespace percs
