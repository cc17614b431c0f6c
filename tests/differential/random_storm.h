// Many things at once around one busy path: lanes that come and go, and links that are given up or
// flap, at both ends of a hub that the path goes through. Each alone is in every random network;
// here they meet.
#pragma once

#include "emulator/scenario/scenario.h"

namespace percs::reference {

// Adds to every second network, of a stream of its own, a train of packets along the path of one of
// its packets, and a storm on two links of that path. `scenario` is complete otherwise.
void AddStorm(Scenario* scenario);

// All links of most networks of switches are of one kind: `lr` becomes what `ll` is.
void MakeLinksAlike(Scenario* scenario);

}  // namespace percs::reference
