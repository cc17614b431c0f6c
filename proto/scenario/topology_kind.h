// Machines by the names that the literature has for their networks: shapes of this one, or networks
// of switches.
#pragma once

#include <string>

#include "emulator/topology/topology.h"
#include "percs/v1/scenario.pb.h"
#include "proto/scenario/errors.h"

namespace percs {

// Of the kind `percs` what the message says; of another the supernodes, drawers, hubs and D links
// that make it, with its endpoints, or its graph. `directory` is where files are. Errors say which
// field is wrong, with the arithmetic.
TopologySpec BuildTopology(const v1::Topology& message, const std::string& directory,
                           ErrorList* errors);

}  // namespace percs
