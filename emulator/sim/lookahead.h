// How far windows of virtual time may reach: the shortest time in which anything crosses between
// two partitions (docs/semantics.md rules 4 and 5).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "emulator/scenario/scenario.h"
#include "emulator/topology/topology.h"

namespace percs {

struct Lookahead {
  Time time = kNever;
  std::string source;  // the crossing that sets it
  Time flit = kNever;  // the shortest crossing that is not of a credit
};

Lookahead FindLookahead(const Topology& topology, const Scenario& scenario);
// The same if every supernode is in one partition: only D links cross. REQUIRES: there is nothing
// but supernodes, two or more.
Lookahead FindHorizon(const Topology& topology, const Scenario& scenario);
// The same between the processes of a placement, which may have no short link between them. D
// cables can be swapped, so that any D link may lead from one process to another.
Lookahead FindCrossing(const Topology& topology, const Scenario& scenario,
                       const std::vector<std::uint16_t>& process_of_node);

// INVALID_ARGUMENT if it is too short for a run over several processes (docs/semantics.md rule 4).
absl::Status CheckDistributed(const Lookahead& lookahead);

}  // namespace percs
