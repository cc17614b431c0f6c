// State of one node at one virtual time, as daemons answer and scrapes show it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "daemon/endpoint/endpoint_stats.h"
#include "emulator/sim/fabric.h"

namespace percs {

struct NodeState {
  NodeId node = 0;
  NodeStats stats;
  PortMask links_up = 0;
  Epoch epoch = 0;
  std::vector<FaultTally> tallies = {};                     // what faults have cost here
  std::vector<std::pair<Epoch, Time>> first_rerouted = {};  // as in NodeResult
  std::vector<RankNow> ranks = {};
  InFlight in_flight = {};
  // By port, how often the link went down; only where the node lives.
  std::array<std::uint32_t, kLinkPorts> link_downs{};
};

// REQUIRES: the node lives in the fabric.
NodeState StateOf(const Fabric& fabric, NodeId node);

// All that one process hosts; no topology while it hosts nothing.
struct HostState {
  std::optional<Topology> topology;
  Time now = 0;
  std::vector<NodeState> nodes;
  std::uint64_t reconnects = 0;
  EndpointStats endpoints;  // of programs outside
};

}  // namespace percs
