#include "emulator/routing/planner.h"

#include <algorithm>
#include <bit>
#include <unordered_map>

#include "emulator/base/digest.h"
#include "emulator/routing/live_fabric.h"

namespace percs {
namespace {

// One copy of each distinct table.
class TablePool {
 public:
  std::shared_ptr<const RouteTable> Intern(RouteTable table) {
    const std::uint64_t hash =
        HashBytes(table.intra.data(), table.intra.size() * sizeof(PortMask)) * 31 +
        HashBytes(table.inter.data(), table.inter.size() * sizeof(PortMask));
    for (auto [it, end] = tables_.equal_range(hash); it != end; ++it) {
      if (*it->second == table) return it->second;
    }
    return tables_.emplace(hash, std::make_shared<const RouteTable>(std::move(table)))->second;
  }

 private:
  std::unordered_multimap<std::uint64_t, std::shared_ptr<const RouteTable>> tables_;
};

class FabricPlan {
 public:
  FabricPlan(const Topology& topology, const Failures& failures)
      : topology_(topology), live_(topology, failures) {}

  std::vector<std::shared_ptr<const HubTables>> Make();

 private:
  std::size_t Nodes() const { return topology_.nodes(); }
  std::vector<PortMask> Intra(NodeId node, int hops_max) const;
  void PlanPair(int from, int to);

  const Topology& topology_;
  const LiveFabric live_;
  TablePool pool_;
  // By hub, then by supernode: own D ports to it, and the best way there from injection or from L0.
  std::vector<std::vector<PortMask>> own_d_, toward_;
  std::vector<DLink> links_;  // scratch
};

// Ports on the shortest ways to each hub of the own supernode, at most `hops_max` L hops long.
std::vector<PortMask> FabricPlan::Intra(NodeId node, int hops_max) const {
  const int hubs = topology_.hubs_per_supernode(), supernode = topology_.supernode_of(node);
  const int own = topology_.hub_in_supernode(node);
  std::vector<PortMask> ports(static_cast<std::size_t>(hubs));
  HubMask wanted = live_.hub(node) ? live_.hubs(supernode) & ~HubBit(own) : 0;
  for (int hops = 1; hops <= hops_max && wanted; ++hops) {
    const HubMask reached = live_.Within(node, hops) & wanted;
    for (HubMask rest = reached; rest; rest &= rest - 1) {
      const int destination = std::countr_zero(rest);
      const HubMask closer = live_.Within(topology_.node(supernode, destination), hops - 1);
      ports[static_cast<std::size_t>(destination)] =
          live_.LPorts(own, live_.neighbors(node) & closer);
    }
    wanted &= ~reached;
  }
  return ports;
}

void FabricPlan::PlanPair(int from, int to) {
  live_.DLinks(from, to, &links_);
  const auto destination = static_cast<std::size_t>(to);
  HubMask exits = 0;
  for (const DLink& link : links_) {
    exits |= HubBit(link.exit);
    own_d_[topology_.node(from, link.exit)][destination] |= PortBit(link.port);
  }
  for (HubMask rest = live_.hubs(from); rest; rest &= rest - 1) {
    const int hub = std::countr_zero(rest);
    const NodeId node = topology_.node(from, hub);
    toward_[node][destination] = exits & HubBit(hub)
                                     ? own_d_[node][destination]
                                     : live_.LPorts(hub, exits & live_.neighbors(node));
  }
}

std::vector<std::shared_ptr<const HubTables>> FabricPlan::Make() {
  const auto supernodes = static_cast<std::size_t>(topology_.supernodes());
  own_d_.assign(Nodes(), std::vector<PortMask>(supernodes));
  toward_.assign(Nodes(), std::vector<PortMask>(supernodes));
  for (int from = 0; from < topology_.supernodes(); ++from) {
    for (int to = 0; to < topology_.supernodes(); ++to) {
      if (from != to) PlanPair(from, to);
    }
  }
  std::vector<std::shared_ptr<const HubTables>> all(Nodes());
  for (NodeId node = 0; node < topology_.nodes(); ++node) {
    auto hub = std::make_shared<HubTables>();
    std::vector<PortMask> intra = Intra(node, 2);
    const auto arrived = pool_.Intern({intra, std::vector<PortMask>(supernodes)});
    const auto strict = pool_.Intern({intra, std::move(own_d_[node])});
    const auto toward = pool_.Intern({std::move(intra), toward_[node]});
    hub->source_direct = pool_.Intern({Intra(node, 3), std::move(toward_[node])});
    hub->source_indirect = toward;
    for (int p = 0; p < kLinkPorts; ++p) {
      const bool l = IsL(static_cast<PortId>(p));
      hub->port_direct[static_cast<std::size_t>(p)] = l ? toward : arrived;
      hub->port_indirect[static_cast<std::size_t>(p)] = l ? strict : toward;
    }
    all[node] = std::move(hub);
  }
  return all;
}

}  // namespace

std::vector<std::shared_ptr<const HubTables>> Planner::Plan(const Failures& failures) const {
  return FabricPlan(topology_, failures).Make();
}

}  // namespace percs
