// The service port and the VC of management packets (paper 000 section IV-C: port 55 of the ISR;
// docs/semantics.md B.10). Packets of one flit, for the hubs' software: they go first on a link,
// but never two of them in a row while data could go, and none waits longer than `service_wait` in
// one buffer. Not modelled: what software does with them takes no time.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "emulator/packet/packet_state.h"

namespace percs {

// In tag of a management packet's header: the node at the other end of the link takes it.
inline constexpr std::uint32_t kServiceDirected = 1;

// Links that a management packet may cross, as many as a data packet has positions.

struct ServiceLanes {
  // One per output: packets that wait for it, in order of arrival, and the far end's slots.
  struct Lane {
    std::deque<Packet*> waiting;
    int credits = 0;
    std::vector<std::pair<std::uint32_t, int>>
        announced;  // generation and number of those under way
  };
  std::array<Lane, kPorts> lanes;
  std::array<int, kPorts> held{};  // by input: slots in use
  Time entry_free = 0;             // the service port hands over one packet after the other
};

}  // namespace percs
