#include "emulator/isr/router.h"

#include <bit>

namespace percs {

PortId Router::Route(const PacketHeader& header, PortId in) {
  if (header.destination == context_.node) return WindowPort(header.destination_window);
  const Topology& topology = *context_.topology;
  const RouteTable* table =
      in < kLinkPorts ? tables_->port_direct[in].get() : tables_->source_direct.get();
  if (!table) return kNoPort;
  const int supernode = topology.supernode_of(header.destination);
  const bool intra = supernode == topology.supernode_of(context_.node);
  const std::vector<PortMask>& entries = intra ? table->intra : table->inter;
  const std::size_t entry =
      static_cast<std::size_t>(intra ? topology.hub_in_supernode(header.destination) : supernode);
  if (entry >= entries.size()) return kNoPort;
  const PortMask mask = entries[entry];
  if (mask == 0) return kNoPort;
  if (std::has_single_bit(mask)) return static_cast<PortId>(std::countr_zero(mask));
  return Choose(mask, in, supernode);
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
