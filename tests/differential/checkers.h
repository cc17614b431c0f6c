// What must hold in every run, checked from the record of what was granted where.
#pragma once

#include <string>
#include <vector>

#include "emulator/topology/topology.h"
#include "tests/differential/reference_router.h"

namespace percs::reference {

// Each returns what is wrong, one line per violation; empty is right.

// Created + synthesised = delivered + dropped, in flits and in packets, over all nodes.
std::vector<std::string> CheckConservation(const std::vector<NodeStats>& nodes);
// Flits of a packet leave each output in order, from 0 to the tail, and no other packet uses its VC
// in between; commitments of an output do not overlap. Where links failed, a cut packet never ends
// on its VC, and the next one, or a copy of the same multicast packet from another input, may start
// there.
std::vector<std::string> CheckFlitOrder(const std::vector<std::vector<ReferenceGrant>>& grants,
                                        const P7ihParameters& parameters, bool links_failed);
// Every output VC is the lowest position strictly above the one the packet came in on; `topology`
// tells which links are those of blades, which have no position.
std::vector<std::string> CheckVcPositions(const std::vector<std::vector<ReferenceGrant>>& grants,
                                          const Topology* topology = nullptr);
// Nothing is left without an event, and every credit of every live link is back.
std::vector<std::string> CheckDrained(const ReferenceResult& result);

}  // namespace percs::reference
