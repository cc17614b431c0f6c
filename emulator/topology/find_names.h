// Names of nodes looked up without the words that an unknown name gets: those compare it with the
// name of every node.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "emulator/topology/topology.h"

namespace percs {

// A hub, blade or crossbar; nothing if no node has this name.
std::optional<NodeId> FindNode(const Topology& topology, const std::string& name);
// Also a multicast group.
std::optional<NodeId> FindDestination(const Topology& topology, const std::string& name);
// In ascending order: one hub, those of a drawer (`sn0-d1`) or of a supernode (`sn0`), or `all`.
// Empty for any other name.
std::vector<NodeId> HubsNamed(const Topology& topology, const std::string& name);

}  // namespace percs
