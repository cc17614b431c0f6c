// Rule 10 of docs/semantics.md for a torus, a HyperX or a fat tree, worked out again from the sizes
// and the neighbours alone.
#pragma once

#include <optional>
#include <vector>

#include "emulator/topology/topology.h"

namespace percs::reference {

class GraphRule {
 public:
  // REQUIRES: a graph that is not listed.
  explicit GraphRule(const Topology& topology);

  // VC of the next link; nothing: none is left. `in`: the port that the packet came in by on `vc`,
  // or an HFI port.
  std::optional<int> NextVc(NodeId node, PortId in, int vc, PortId out, bool detour) const;

 private:
  struct Order {
    int section = 0, place = 0;
  };
  // Of the link from one switch to its neighbour.
  Order Of(NodeId from, NodeId to) const;
  int Level(NodeId node) const;
  bool Up(NodeId from, NodeId to) const;

  const Topology& topology_;
  std::vector<int> distance_;  // from the root
};

}  // namespace percs::reference
