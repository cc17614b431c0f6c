// Looks a packet's next port up in the installed tables (docs/semantics.md B.2).
#pragma once

#include <array>
#include <bit>
#include <memory>
#include <utility>
#include <vector>

#include "emulator/isr/packet_state.h"
#include "emulator/node/node_context.h"
#include "emulator/routing/route_tables.h"

namespace percs {

class Router {
 public:
  explicit Router(const NodeContext& context)
      : context_(context),
        supernode_first_(FirstHub(*context.topology, context.node)) {}

  void Install(std::shared_ptr<const HubTables> tables, Epoch epoch) {
    previous_ = tables_ == tables ? nullptr : std::move(tables_);
    tables_ = std::move(tables);
    epoch_ = epoch;
  }
  // By epoch: when a packet was first routed by an entry that the epoch changed.
  const std::vector<std::pair<Epoch, Time>>& first_rerouted() const { return first_rerouted_; }
  const std::shared_ptr<const HubTables>& tables() const { return tables_; }
  Epoch epoch() const { return epoch_; }

  // Output port of a packet that came in on `in`; kNoPort if the tables have none.
  PortId Route(const PacketHeader& header, PortId in);
  // The first of the ports that lead to a hub, if any: a guess at what Route will say, which moves no pointer.
  PortId Guess(NodeId hub, PortId in) const {
    const PortMask mask = Lookup(*tables_, hub, in);
    return mask == 0 ? kNoPort : static_cast<PortId>(std::countr_zero(mask));
  }
  // HFI port that a window is pinned to (rule 15).
  PortId WindowPort(WindowId window) const {
    const int per_hfi = context_.parameters->windows_per_hfi;
    return static_cast<PortId>(window < per_hfi ? kHfiFirst + window % 4
                                                : kHfiFirst + 4 + (window - per_hfi) % 4);
  }

 private:
  static const RouteTable* TableOf(const HubTables& tables, PortId in) {
    return in < kLinkPorts ? tables.port_direct[in].get() : tables.source_direct.get();
  }
  // First hub of the supernode that a node's packets start in.
  static NodeId FirstHub(const Topology& topology, NodeId node) {
    const NodeId hub = topology.ExitHub(node);
    return hub == kNoNode ? 0 : topology.node(topology.supernode_of(hub), 0);
  }
  // Routes lead to hubs; a blade is one hop behind its own.
  PortId RouteToBlade(const PacketHeader& header, PortId in);
  PortId RouteToHub(NodeId hub, PortId in);
  PortMask Lookup(const HubTables& tables, NodeId hub, PortId in) const;
  void NoteRerouted(NodeId hub, PortId in, PortMask mask);
  PortId Choose(PortMask mask, PortId in, int supernode);

  const NodeContext& context_;
  const NodeId supernode_first_;  // node of the own supernode's first hub
  std::shared_ptr<const HubTables> tables_;
  Epoch epoch_ = 0;
  std::shared_ptr<const HubTables> previous_;  // until a packet has used a changed entry
  std::vector<std::pair<Epoch, Time>> first_rerouted_;
  // Port chosen last + 1, by destination supernode; made when an input first has a choice.
  std::array<std::vector<std::uint8_t>, kPorts> pointers_;
};

}  // namespace percs
