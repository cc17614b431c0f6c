// Names of links by both of their ends.
#pragma once

#include <string>

#include "emulator/topology/topology.h"

namespace percs {

// `sn0-d0-h0/sn0-d1-h4`.
std::string EndsOf(const Topology& topology, LinkEnd link);
// The end by which a link is named: the lower one.
LinkEnd LowerEnd(const Topology& topology, LinkEnd link);

}  // namespace percs
