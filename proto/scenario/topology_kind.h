// Machines by the names that the literature has for their networks, as shapes of this one.
#pragma once

#include "emulator/topology/topology.h"
#include "percs/v1/scenario.pb.h"
#include "proto/scenario/errors.h"

namespace percs {

// Of the kind `percs` what the message says; of another the supernodes, drawers, hubs and D links
// that make it, with its endpoints. Errors say which field is wrong, with the arithmetic.
TopologySpec BuildTopology(const v1::Topology& message, ErrorList* errors);

}  // namespace percs
