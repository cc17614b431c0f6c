#include "emulator/routing/planner.h"

#include <algorithm>
#include <bit>
#include <unordered_map>

#include "emulator/base/digest.h"
#include "emulator/routing/detours.h"
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
      : topology_(topology), failures_(failures), live_(topology, failures) {}

  std::vector<std::shared_ptr<const HubTables>> Make();

 private:
  std::size_t Nodes() const { return topology_.hubs(); }
  std::vector<PortMask> Intra(NodeId node, int hops_max) const;
  void PlanPair(int from, int to);
  void PlanDetours(const std::vector<std::vector<PortMask>>& intra);
  std::shared_ptr<const RouteTable> WithDetours(std::shared_ptr<const RouteTable> table,
                                                NodeId node, PortId in_port);
  std::shared_ptr<const HubTables> MakeHub(NodeId node, std::vector<PortMask> from_source);
  std::shared_ptr<const HubTables> MakeBlade(NodeId blade);

  const Topology& topology_;
  const Failures& failures_;
  const LiveFabric live_;
  TablePool pool_;
  // By hub, then by supernode: own D ports to it, and the way by own D ports or over an exit hub.
  std::vector<std::vector<PortMask>> own_d_, toward_;
  std::vector<std::pair<NodeId, int>> stranded_;  // hubs that have no such way to a supernode
  std::vector<TableEntry> entries_;               // what detours change, by node, then port
  std::vector<DLink> links_;                      // scratch
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
  HubMask exits = 0, reaches = 0;
  for (const DLink& link : links_) {
    // A link that lands where some hubs are out of reach serves only those who have no better way.
    const HubMask landing = live_.Landing(topology_.node(to, link.landing), kD0);
    if (std::popcount(landing) < live_.landing_max(to) || (reaches && landing != reaches)) continue;
    reaches = landing;
    exits |= HubBit(link.exit);
    own_d_[topology_.node(from, link.exit)][destination] |= PortBit(link.port);
  }
  for (HubMask rest = live_.hubs(from); rest; rest &= rest - 1) {
    const int hub = std::countr_zero(rest);
    const NodeId node = topology_.node(from, hub);
    PortMask& toward = toward_[node][destination];
    toward = exits & HubBit(hub) ? own_d_[node][destination]
                                 : live_.LPorts(hub, exits & live_.neighbors(node));
    if (!toward && live_.hubs(to)) stranded_.emplace_back(node, to);
  }
}

void FabricPlan::PlanDetours(const std::vector<std::vector<PortMask>>& intra) {
  Detours detours(topology_, live_, own_d_, toward_);
  std::vector<int> served(stranded_.size(), -1);
  for (bool better = true; better;) {
    better = false;
    for (std::size_t i = 0; i < stranded_.size(); ++i) {
      if (served[i] == live_.landing_max(stranded_[i].second)) continue;
      const int now = detours.AddInter(stranded_[i].first, stranded_[i].second);
      better = better || now > served[i];
      served[i] = now;
    }
  }
  if (topology_.supernodes() > 1) {
    for (NodeId node = 0; node < topology_.hubs(); ++node) {
      if (!live_.hub(node)) continue;
      HubMask wanted =
          live_.hubs(topology_.supernode_of(node)) & ~HubBit(topology_.hub_in_supernode(node));
      for (; wanted; wanted &= wanted - 1) {
        const int hub = std::countr_zero(wanted);
        if (!intra[node][static_cast<std::size_t>(hub)]) detours.AddIntra(node, hub);
      }
    }
  }
  entries_ = detours.Entries();
}

std::shared_ptr<const RouteTable> FabricPlan::WithDetours(std::shared_ptr<const RouteTable> table,
                                                          NodeId node, PortId in_port) {
  const auto before = [](const TableEntry& entry, std::pair<NodeId, PortId> place) {
    return std::pair(entry.node, entry.in_port) < place;
  };
  auto entry = std::lower_bound(entries_.begin(), entries_.end(), std::pair(node, in_port), before);
  if (entry == entries_.end() || entry->node != node || entry->in_port != in_port) return table;
  RouteTable changed = *table;
  for (; entry != entries_.end() && entry->node == node && entry->in_port == in_port; ++entry) {
    (entry->intra ? changed.intra : changed.inter)[static_cast<std::size_t>(entry->destination)] =
        entry->ports;
  }
  return pool_.Intern(std::move(changed));
}

std::shared_ptr<const HubTables> FabricPlan::MakeHub(NodeId node,
                                                     std::vector<PortMask> from_source) {
  const auto supernodes = static_cast<std::size_t>(topology_.supernodes());
  auto hub = std::make_shared<HubTables>();
  std::vector<PortMask> intra = Intra(node, 2);
  // Direct packets that land over a D link are in their supernode, unless a detour says otherwise.
  const auto landed = pool_.Intern({intra, std::vector<PortMask>(supernodes)});
  const auto own_d = pool_.Intern({intra, std::move(own_d_[node])});
  const auto toward = pool_.Intern({std::move(intra), toward_[node]});
  hub->source_direct =
      WithDetours(pool_.Intern({std::move(from_source), std::move(toward_[node])}), node, kNoPort);
  hub->source_indirect = toward;
  for (int p = 0; p < kLinkPorts; ++p) {
    const PortId port = static_cast<PortId>(p);
    // A direct packet on an L port finds the way to other exit hubs too: one that is under way when
    // the D link it was sent to dies still has positions left for L1 D1 L2.
    hub->port_direct[port] = WithDetours(IsL(port) ? toward : landed, node, port);
    hub->port_indirect[port] = IsL(port) ? own_d : toward;
    const NodeId peer = topology_.Peer(node, port).node;
    if (peer == kNoNode || !topology_.is_blade(peer)) continue;
    hub->port_direct[port] = hub->source_direct;
    hub->port_indirect[port] = hub->source_indirect;
  }
  return hub;
}

// Everything goes to the hub the blade is plugged into, as long as that link lives.
std::shared_ptr<const HubTables> FabricPlan::MakeBlade(NodeId blade) {
  const LinkEnd socket = topology_.BladePeer(blade);
  const bool live = topology_.ExitHub(blade) != kNoNode && live_.hub(socket.node) &&
                    !failures_.links.contains({socket.node, socket.port});
  const auto hubs = static_cast<std::size_t>(topology_.hubs_per_supernode());
  const auto supernodes = static_cast<std::size_t>(topology_.supernodes());
  auto tables = std::make_shared<HubTables>();
  const PortMask out = live ? PortBit(kBladePort) : 0;
  tables->source_direct = pool_.Intern(
      {std::vector<PortMask>(hubs, out), std::vector<PortMask>(supernodes, out)});
  tables->source_indirect = tables->source_direct;
  const auto none =
      pool_.Intern({std::vector<PortMask>(hubs), std::vector<PortMask>(supernodes)});
  tables->port_direct.fill(none);
  tables->port_indirect.fill(none);
  return tables;
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
  std::vector<std::vector<PortMask>> intra(Nodes());
  for (NodeId node = 0; node < topology_.hubs(); ++node) intra[node] = Intra(node, 3);
  if (!failures_.empty()) PlanDetours(intra);
  std::vector<std::shared_ptr<const HubTables>> all(Nodes());
  for (NodeId node = 0; node < topology_.hubs(); ++node)
    all[node] = MakeHub(node, std::move(intra[node]));
  for (NodeId node = topology_.hubs(); node < topology_.nodes(); ++node)
    all.push_back(MakeBlade(node));
  return all;
}

}  // namespace

std::vector<std::shared_ptr<const HubTables>> Planner::Plan(const Failures& failures) const {
  return FabricPlan(topology_, failures).Make();
}

}  // namespace percs
