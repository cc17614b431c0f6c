// What a packet from one hub can reach by any VC-legal path at all, whatever the tables say.
#pragma once

#include <string>
#include <vector>

#include "emulator/routing/live_fabric.h"
#include "emulator/topology/topology.h"

namespace percs {

class LegalReach {
 public:
  LegalReach(const Topology& topology, const LiveFabric& live) : topology_(topology), live_(live) {}

  // Lowest position at which a packet from `source` can arrive at each hub: kInjected at itself,
  // kNoPosition where it cannot. A lower position allows everything that a higher one does, so the
  // lowest is all there is to know.
  const std::vector<Position>& From(NodeId source);
  // A shortest path over live links that heeds no positions, as names of hubs; empty if there is
  // none.
  std::string AnyPath(NodeId source, NodeId destination) const;

 private:
  const Topology& topology_;
  const LiveFabric& live_;
  NodeId source_ = kNoNode;  // whose positions these are
  std::vector<Position> positions_;
};

}  // namespace percs
