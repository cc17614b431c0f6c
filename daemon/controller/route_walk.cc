#include "daemon/controller/route_walk.h"

#include <bit>

namespace percs {
namespace {

class Walk {
 public:
  Walk(const Topology& topology, const TablesOf& tables, NodeId destination, std::size_t routes_max)
      : topology_(topology), tables_(tables), destination_(destination), routes_max_(routes_max) {}

  // The packet is at `node`, came in on `port` (kNoPort: from the HFI) and on `position`.
  void From(NodeId node, PortId port, Position position) {
    if (routes_.size() >= routes_max_) return;
    if (node == destination_) return Arrive();
    if (topology_.is_blade(destination_) && topology_.BladePeer(destination_).node == node) {
      return Take(node, topology_.BladePeer(destination_).port, position, 1);
    }
    const PortMask mask = Outputs(node, port);
    if (mask == 0) return GiveUp("no_route at " + topology_.NodeName(node));
    for (PortMask left = mask; left != 0; left &= left - 1) {
      Take(node, static_cast<PortId>(std::countr_zero(left)), position, std::popcount(mask));
    }
  }
  std::vector<v1::Route> Routes() { return std::move(routes_); }

 private:
  PortMask Outputs(NodeId node, PortId port) const {
    const auto hub = tables_(node);
    const RouteTable* table = !hub              ? nullptr
                              : port == kNoPort ? hub->source_direct.get()
                                                : hub->port_direct[port].get();
    const NodeId here = topology_.ExitHub(node), to = topology_.ExitHub(destination_);
    if (table == nullptr || here == kNoNode || to == kNoNode) return 0;
    const bool inside = topology_.supernode_of(here) == topology_.supernode_of(to);
    const auto& entries = inside ? table->intra : table->inter;
    const auto entry = static_cast<std::size_t>(inside ? topology_.hub_in_supernode(to)
                                                       : topology_.supernode_of(to));
    return entry < entries.size() ? entries[entry] : 0;
  }
  void Take(NodeId node, PortId out, Position position, int choices) {
    const LinkEnd far = topology_.Peer(node, out);
    if (far.node == kNoNode)
      return GiveUp("nothing plugged in at " + topology_.LinkName({node, out}));
    // A blade's link has no position: packets take its VC 0 and are new to the hub behind it.
    const bool edge = topology_.is_blade(node) || topology_.is_blade(far.node);
    const Position next = edge ? kInjected : NextPosition(position, out);
    if (next == kNoPosition) {
      return GiveUp("no_vc_position at " + topology_.LinkName({node, out}));
    }
    v1::RouteHop& hop = hops_.emplace_back();
    hop.set_node(topology_.NodeName(node));
    hop.set_link(topology_.LinkName({node, out}));
    hop.set_link_class(ClassName(ClassOf(out)));
    hop.set_vc(edge ? VcId{0} : VcOfPosition(next));
    hop.set_choices(static_cast<std::uint32_t>(choices));
    From(far.node, far.port, next);
    hops_.pop_back();
  }
  void Arrive() {
    v1::Route& route = Add();
    v1::RouteHop* last = route.add_hops();
    last->set_node(topology_.NodeName(destination_));
    last->set_link("HFI");
    last->set_link_class("HFI");
    last->set_choices(1);
  }
  void GiveUp(std::string problem) { Add().set_problem(std::move(problem)); }
  v1::Route& Add() {
    v1::Route& route = routes_.emplace_back();
    for (const v1::RouteHop& hop : hops_) *route.add_hops() = hop;
    return route;
  }

  const Topology& topology_;
  const TablesOf& tables_;
  const NodeId destination_;
  const std::size_t routes_max_;
  std::vector<v1::RouteHop> hops_;
  std::vector<v1::Route> routes_;
};

}  // namespace

std::vector<v1::Route> WalkRoutes(const Topology& topology, const TablesOf& tables, NodeId source,
                                  NodeId destination, std::size_t routes_max) {
  Walk walk(topology, tables, destination, routes_max);
  walk.From(source, kNoPort, kInjected);
  return walk.Routes();
}

}  // namespace percs
