#include "emulator/fault/loss.h"

#include <algorithm>

namespace percs {

std::vector<FaultAction> ActionsOf(const LostHubs& lost, const Topology& topology) {
  std::vector<FaultAction> actions;
  const auto is_lost = [&](NodeId node) {
    return std::find(lost.nodes.begin(), lost.nodes.end(), node) != lost.nodes.end();
  };
  for (const NodeId node : lost.nodes) {
    for (PortId port = 0; port < kLinkPorts; ++port) {
      const LinkEnd far = topology.Peer(node, port);
      if (far.node == kNoNode || (is_lost(far.node) && far.node < node)) continue;
      FaultAction action;
      action.at = lost.at;
      action.fault = kLossNumbers + lost.number;
      action.end = {node, port};
      actions.push_back(action);
    }
  }
  return actions;
}

}  // namespace percs
