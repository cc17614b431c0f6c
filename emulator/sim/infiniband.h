// Crossbars and host adapters of InfiniBand (paper 004, section Roadrunner) as blocks of this
// engine. A crossbar is an ISR of 24 ports: an input buffer with credits per port, one virtual
// lane, output queues, cut-through, the link level of B.8. Only the rates and the routing differ: a
// table with one port per destination (emulator/topology/ib_tree.h), the order of whose links
// cannot close a cycle, so one lane is enough.
//
// Not modelled: more lanes than one, and service levels; packets of other sizes than 2,048 bytes,
// which is InfiniBand's MTU; subnet management packets (network management has paths of its own,
// docs/semantics.md rule 19). InfiniBand's transport acknowledges and sends again like the message
// layer, of which it takes the place.
#pragma once

#include "emulator/scenario/scenario.h"

namespace percs {

// The scenario with the parameters of crossbars and adapters.
Scenario WithInfiniband(Scenario scenario);

// From the instant an adapter has a message of one flit until its software has it, over one
// crossbar.
Time OneCrossbarTime(const P7ihParameters& parameters);

}  // namespace percs
