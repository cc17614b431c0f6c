#include "daemon/metrics/node_state.h"

namespace percs {

NodeState StateOf(const Fabric& fabric, NodeId node) {
  NodeState state{node,
                  fabric.stats(node),
                  0,
                  fabric.epoch(node),
                  fabric.tallies(node),
                  fabric.first_rerouted(node),
                  fabric.ranks(node),
                  fabric.in_flight(node)};
  for (PortId port = 0; port < kLinkPorts; ++port) {
    if (!fabric.topology().connected(node, port)) continue;
    if (fabric.link_up({node, port})) state.links_up |= PortBit(port);
    state.link_downs[port] = fabric.link_downs({node, port});
  }
  return state;
}

}  // namespace percs
