#include "emulator/routing/link_loads.h"

#include <algorithm>
#include <bit>
#include <tuple>

#include "absl/status/status.h"
#include "emulator/routing/planner.h"
#include "fmt/format.h"

namespace percs {
namespace {

// All routes to a supernode share their entries until they land in it, so they are carried together
// and only the rest of the way, inside, is walked per destination.
class LoadCount {
 public:
  LoadCount(const Topology& topology, const TableSet& tables)
      : topology_(topology),
        tables_(tables),
        loads_(static_cast<std::size_t>(topology.hubs()) * kLinkPorts),
        landed_(static_cast<std::size_t>(topology.hubs()) * kDPorts * 2) {}

  AllToAllLoads Run();

 private:
  struct Place {
    NodeId node;
    PortId in_port;
    Position position;
  };

  const RouteTable& Table(const Place& place) const {
    const HubTables& hub = *tables_[place.node];
    return place.in_port == kNoPort ? *hub.source_direct : *hub.port_direct[place.in_port];
  }
  // Calls `visit(next place)` for each choice after adding `load` in equal shares to their links.
  template <typename Visit>
  void Leave(const Place& place, PortMask ports, double load, Visit visit);
  void ToSupernode(const Place& place, int supernode, double share);
  void ToHub(const Place& place, NodeId destination, double share);
  void AddRestOfLanded();
  AllToAllLoads Summary() const;

  const Topology& topology_;
  const TableSet& tables_;
  std::vector<double> loads_;   // by node and output port
  std::vector<double> landed_;  // sources, by node, D port and position D0 or D1
  double routes_ = 0;
};

template <typename Visit>
void LoadCount::Leave(const Place& place, PortMask ports, double load, Visit visit) {
  const double share = load / std::popcount(ports);
  for (; ports; ports &= ports - 1) {
    const PortId port = static_cast<PortId>(std::countr_zero(ports));
    const Position next = NextPosition(place.position, port);
    const LinkEnd peer = topology_.Peer(place.node, port);
    if (next == kNoPosition || peer.node == kNoNode) continue;  // dropped there
    loads_[static_cast<std::size_t>(place.node) * kLinkPorts + port] += share;
    visit(Place{peer.node, peer.port, next});
  }
}

// `share` of the routes from one source to each hub of `supernode`.
void LoadCount::ToSupernode(const Place& place, int supernode, double share) {
  const PortMask ports = Table(place).inter[static_cast<std::size_t>(supernode)];
  const double next_share = share / std::max(1, std::popcount(ports));
  Leave(place, ports, share * topology_.hubs_per_supernode(), [&](const Place& next) {
    if (topology_.supernode_of(next.node) != supernode)
      return ToSupernode(next, supernode, next_share);
    const std::size_t port = static_cast<std::size_t>(next.in_port - kDFirst);
    landed_[(next.node * kDPorts + port) * 2 + (next.position == kD1)] += next_share;
  });
}

void LoadCount::ToHub(const Place& place, NodeId destination, double share) {
  if (place.node == destination) {
    routes_ += share;
    return;
  }
  const auto hub = static_cast<std::size_t>(topology_.hub_in_supernode(destination));
  const PortMask ports = Table(place).intra[hub];
  const double next_share = share / std::max(1, std::popcount(ports));
  // The few routes that leave their supernode and return are not followed outside it.
  const PortMask inside = ports & (PortBit(kDFirst) - 1);
  Leave(place, inside, next_share * std::popcount(inside),
        [&](const Place& next) { ToHub(next, destination, next_share); });
}

void LoadCount::AddRestOfLanded() {
  for (NodeId node = 0; node < topology_.hubs(); ++node) {
    for (int port = 0; port < kDPorts; ++port) {
      for (Position position : {kD0, kD1}) {
        const double sources =
            landed_[(node * kDPorts + static_cast<std::size_t>(port)) * 2 + (position == kD1)];
        if (sources == 0) continue;
        for (int hub = 0; hub < topology_.hubs_per_supernode(); ++hub) {
          ToHub({node, static_cast<PortId>(kDFirst + port), position},
                topology_.node(topology_.supernode_of(node), hub), sources);
        }
      }
    }
  }
}

AllToAllLoads LoadCount::Summary() const {
  AllToAllLoads all;
  all.routes = routes_;
  for (NodeId node = 0; node < topology_.hubs(); ++node) {
    for (int p = 0; p < kLinkPorts; ++p) {
      const PortId port = static_cast<PortId>(p);
      if (!topology_.connected(node, port)) continue;
      const LinkClass link_class = ClassOf(port);
      ClassLoad& load = link_class == LinkClass::kLl   ? all.ll
                        : link_class == LinkClass::kLr ? all.lr
                                                       : all.d;
      const double here = loads_[static_cast<std::size_t>(node) * kLinkPorts + port];
      load.min = load.directions == 0 ? here : std::min(load.min, here);
      load.max = std::max(load.max, here);
      ++load.directions;
    }
  }
  return all;
}

AllToAllLoads LoadCount::Run() {
  for (NodeId source = 0; source < topology_.hubs(); ++source) {
    const Place start{source, kNoPort, kInjected};
    const int own = topology_.supernode_of(source);
    for (int supernode = 0; supernode < topology_.supernodes(); ++supernode) {
      if (supernode != own) ToSupernode(start, supernode, 1);
    }
    for (int hub = 0; hub < topology_.hubs_per_supernode(); ++hub) {
      const NodeId destination = topology_.node(own, hub);
      if (destination != source) ToHub(start, destination, 1);
    }
  }
  AddRestOfLanded();
  return Summary();
}

}  // namespace

AllToAllLoads CountAllToAll(const Topology& topology, const TableSet& tables) {
  return LoadCount(topology, tables).Run();
}

absl::StatusOr<AllToAllBound> BoundAllToAll(int d, const LinkRates& rates) {
  if (d < 0 || d > kDPorts) {
    return absl::InvalidArgumentError(fmt::format("d = {}: a hub has 0 to {} D links", d, kDPorts));
  }
  const TopologySpec spec{32 * d + 1, 4, 8, 1};
  const auto topology = Topology::Create(spec);
  if (!topology.ok()) return topology.status();
  const AllToAllLoads loads = CountAllToAll(*topology, Planner(*topology).Plan({}));
  AllToAllBound bound{d,          spec.supernodes, topology->hubs(), loads.ll.max, loads.lr.max,
                      loads.d.max};
  bound.gb_per_second = rates.injection;
  bound.limit = LinkClass::kHfi;
  const double others = bound.hubs - 1.0;
  for (const auto& [link_class, rate, routes] : {std::tuple{LinkClass::kLl, rates.ll, bound.c_ll},
                                                 std::tuple{LinkClass::kLr, rates.lr, bound.c_lr},
                                                 std::tuple{LinkClass::kD, rates.d, bound.c_d}}) {
    if (routes == 0 || others * rate / routes >= bound.gb_per_second) continue;
    bound.gb_per_second = others * rate / routes;
    bound.limit = link_class;
  }
  return bound;
}

}  // namespace percs
