#include "emulator/isr/router.h"

#include <bit>

namespace percs {

PortMask Router::Lookup(const HubTables& tables, NodeId destination, PortId in) const {
  const RouteTable* table = TableOf(tables, in);
  if (!table) return 0;
  const Topology& topology = *context_.topology;
  // Wraps far above any hub count for a lower node of another supernode.
  const NodeId hub = destination - supernode_first_;
  const bool intra = hub < static_cast<NodeId>(topology.hubs_per_supernode());
  const std::vector<PortMask>& entries = intra ? table->intra : table->inter;
  const std::size_t entry = intra ? hub : static_cast<std::size_t>(topology.supernode_of(destination));
  return entry < entries.size() ? entries[entry] : 0;
}

PortId Router::Route(const PacketHeader& header, PortId in) {
  if (header.destination == context_.node) return WindowPort(header.destination_window);
  if (context_.topology->is_blade(header.destination)) return RouteToBlade(header, in);
  return RouteToHub(header.destination, in);
}

PortId Router::RouteToBlade(const PacketHeader& header, PortId in) {
  const LinkEnd socket = context_.topology->BladePeer(header.destination);
  if (socket.node == context_.node) return socket.port;
  const NodeId hub = context_.topology->ExitHub(header.destination);
  return hub == kNoNode ? kNoPort : RouteToHub(hub, in);
}

PortId Router::RouteToHub(NodeId hub, PortId in) {
  const PortMask mask = Lookup(*tables_, hub, in);
  if (previous_) NoteRerouted(hub, in, mask);
  if (mask == 0) return kNoPort;
  if ((mask & (mask - 1)) == 0) return static_cast<PortId>(std::countr_zero(mask));
  return Choose(mask, in, context_.topology->supernode_of(hub));
}

void Router::NoteRerouted(NodeId hub, PortId in, PortMask mask) {
  if (mask == 0 || Lookup(*previous_, hub, in) == mask) return;
  first_rerouted_.emplace_back(epoch_, context_.now);
  previous_ = nullptr;
}

PortId Router::Choose(PortMask mask, PortId in, int supernode) {
  std::vector<std::uint8_t>& pointers = pointers_[in];
  if (pointers.empty()) pointers.resize(static_cast<std::size_t>(context_.topology->supernodes()));
  std::uint8_t& pointer = pointers[static_cast<std::size_t>(supernode)];
  PortMask above = mask & (~PortMask{0} << pointer);
  if (above == 0) above = mask;
  const int port = std::countr_zero(above);
  pointer = static_cast<std::uint8_t>(port + 1);
  return static_cast<PortId>(port);
}

}  // namespace percs
