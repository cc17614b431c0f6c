// Proves the multicast part of a table set.
#pragma once

#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "emulator/routing/channel_graph.h"
#include "emulator/routing/live_fabric.h"
#include "emulator/routing/planner.h"

namespace percs {

// A packet at a hub: the port it came in by (kNoPort: it is new), and its position there (rule 10
// of docs/semantics.md).
struct TreePlace {
  NodeId node = kNoNode;
  PortId in = kNoPort;
  Position position = kInjected;
};

// What the trees of a kind of network have to keep to.
struct TreeRules {
  std::function<bool(NodeId)> alive;
  std::function<bool(NodeId, PortId)> live;
  // Of a packet to `group` on the next link; kNoPosition: none is left.
  std::function<Position(NodeId group, const TreePlace&, PortId out)> next;
  // By hub: some legal path from `source` gets there.
  std::function<std::vector<bool>(NodeId source)> reach;
  // A packet that came in may wait for the next link.
  std::function<void(const TreePlace&, PortId out, Position next)> may_wait;
};

// Follows every branch of every group from its source: over live links, within the VC positions, to
// no hub twice, to every member that a legal path reaches, and delivered nowhere else.
absl::Status CheckTrees(const Topology& topology, const TreeRules& rules, const TableSet& tables,
                        CheckReport* report);

// The same with the rules of PERCS. Adds what may wait for what to `channels`.
absl::Status CheckMulticast(const Topology& topology, const LiveFabric& live,
                            const TableSet& tables, ChannelGraph* channels, CheckReport* report);

}  // namespace percs
