#include "emulator/node/edge_node.h"

#include "emulator/node/cell_node.h"
#include "emulator/node/triblade_node.h"

namespace percs {

absl::StatusOr<std::unique_ptr<EdgeNode>> MakeEdgeNode(NodeId node, const Scenario& scenario,
                                                       const Topology& topology, WorkCounters* work,
                                                       const DeliveryObserver* on_delivery) {
  const std::size_t number = node - topology.hubs();
  if (number < scenario.blades.size() && scenario.blades[number].type == kTribladeType) {
    auto triblade = TribladeNode::Create(node, scenario, topology, work, on_delivery);
    if (!triblade.ok()) return triblade.status();
    return std::unique_ptr<EdgeNode>(*std::move(triblade));
  }
  auto blade = CellNode::Create(node, scenario, topology, work, on_delivery);
  if (!blade.ok()) return blade.status();
  return std::unique_ptr<EdgeNode>(*std::move(blade));
}

}  // namespace percs
