#include "daemon/controller/rpc/route_walk.h"

#include <bit>

namespace percs {
namespace {

class Walk {
 public:
  Walk(const Topology& topology, const TablesOf& tables, const RouteRequest& request,
       std::size_t routes_max)
      : topology_(topology),
        tables_(tables),
        destination_(request.destination),
        mode_(request.mode),
        routes_max_(routes_max) {}

  void SetMiddle(int middle) { middle_ = middle; }

  // The packet is at `node`, came in on `port` (kNoPort: from the HFI) and on `position`, which in
  // a network of switches says no more than the VC.
  void From(NodeId node, PortId port, Position position) {
    if (routes_.size() >= routes_max_) return;
    if (node == destination_) return Arrive();
    const bool in_tree = topology_.in_tree(node);
    if (!in_tree && destination_ >= topology_.hubs() &&
        topology_.Socket(destination_).node == node) {
      return Take({node, port, position}, topology_.Socket(destination_).port, 1);
    }
    const PortMask mask = in_tree ? Forwarding(node) : Outputs(node, port);
    if (mask == 0) return GiveUp("no_route at " + topology_.NodeName(node));
    for (PortMask left = mask; left != 0; left &= left - 1) {
      Take({node, port, position}, static_cast<PortId>(std::countr_zero(left)),
           std::popcount(mask));
    }
  }
  std::vector<v1::Route> Routes() { return std::move(routes_); }

 private:
  struct Place {
    NodeId node;
    PortId port;
    Position position;
  };

  PortMask Forwarding(NodeId node) const {
    const auto tables = tables_(node);
    const auto endpoint = static_cast<std::size_t>(topology_.DestinationEndpoint(destination_));
    if (tables == nullptr || endpoint >= tables->forwarding.size()) return 0;  // -1: no gateway
    const PortId port = tables->forwarding[endpoint];
    return port == kNoPort ? 0 : PortBit(port);
  }
  PortMask Outputs(NodeId node, PortId port) const {
    const auto hub = tables_(node);
    const NodeId here = topology_.ExitHub(node), to = topology_.ExitHub(destination_);
    if (hub == nullptr || here == kNoNode || to == kNoNode) return 0;
    TablePlace place{TableKind::kDirect, port,
                     topology_.supernode_of(here) == topology_.supernode_of(to)};
    if (middle_ >= 0) {
      place.kind = TableKind::kIndirect;
    } else if (mode_ == RouteMode::kHwDirectStriped && port == kNoPort) {
      place.kind = TableKind::kStriped;
    }
    const bool first_leg = middle_ >= 0 && topology_.supernode_of(here) != middle_;
    place.index = static_cast<std::uint16_t>(place.intra ? topology_.hub_in_supernode(to)
                                             : first_leg ? middle_
                                                         : topology_.supernode_of(to));
    const RouteTable* table = hub->Table(place.kind, port).get();
    return table ? table->Entry(place) : 0;
  }
  Position Next(const Place& place, PortId out) const {
    const SwitchGraph* const graph = topology_.graph();
    if (graph == nullptr) return NextPosition(place.position, out);
    const auto hub = tables_(place.node);
    const VcId in_vc = place.position == kInjected ? VcId{0} : VcOfPosition(place.position);
    const VcId vc = graph->NextVc(place.node, place.port, in_vc, out, hub->Detours(destination_));
    return vc == SwitchGraph::kNoVc ? kNoPosition : PositionOf(kLlFirst, vc);
  }
  void Take(const Place& place, PortId out, int choices) {
    const NodeId node = place.node;
    const LinkEnd far = topology_.Peer(node, out);
    if (far.node == kNoNode)
      return GiveUp("nothing plugged in at " + topology_.LinkName({node, out}));
    // A link of a blade or crossbar has no position: packets take its VC 0 and are new to the hub
    // behind it.
    const bool edge = std::max(node, far.node) >= topology_.hubs();
    const Position next = edge ? kInjected : Next(place, out);
    if (next == kNoPosition) {
      return GiveUp("no_vc_position at " + topology_.LinkName({node, out}));
    }
    v1::RouteHop& hop = hops_.emplace_back();
    hop.set_node(topology_.NodeName(node));
    hop.set_link(topology_.LinkName({node, out}));
    hop.set_link_class(ClassName(topology_.ClassOfLink({node, out})));
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
  const RouteMode mode_;
  int middle_ = -1;  // of the indirect routes that are followed
  const std::size_t routes_max_;
  std::vector<v1::RouteHop> hops_;
  std::vector<v1::Route> routes_;
};

}  // namespace

std::vector<v1::Route> WalkRoutes(const Topology& topology, const TablesOf& tables,
                                  const RouteRequest& request, std::size_t routes_max) {
  Walk walk(topology, tables, request, routes_max);
  const NodeId from = topology.ExitHub(request.source), to = topology.ExitHub(request.destination);
  const bool indirect = IsIndirect(request.mode) && from != kNoNode && to != kNoNode &&
                        request.source < topology.hubs() &&
                        topology.supernode_of(from) != topology.supernode_of(to);
  if (!indirect) {
    walk.From(request.source, kNoPort, kInjected);
    return walk.Routes();
  }
  const auto hub = tables(request.source);
  for (int middle = 0; middle < topology.supernodes(); ++middle) {
    const bool asked = request.middle < 0 || request.middle == middle;
    if (!asked || middle == topology.supernode_of(from) || middle == topology.supernode_of(to) ||
        hub->Closed(topology.supernode_of(to), middle)) {
      continue;
    }
    walk.SetMiddle(middle);
    walk.From(request.source, kNoPort, kInjected);
  }
  return walk.Routes();
}

}  // namespace percs
