#include "emulator/routing/fabric_plan.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <tuple>

#include "emulator/base/digest.h"
#include "emulator/routing/forwarding.h"

namespace percs {
std::shared_ptr<const RouteTable> TablePool::Intern(RouteTable table) {
  const std::uint64_t hash =
      HashBytes(table.intra.data(), table.intra.size() * sizeof(PortMask)) * 31 +
      HashBytes(table.inter.data(), table.inter.size() * sizeof(PortMask));
  for (auto [it, end] = tables_.equal_range(hash); it != end; ++it) {
    if (*it->second == table) return it->second;
  }
  return tables_.emplace(hash, std::make_shared<const RouteTable>(std::move(table)))->second;
}

FabricPlan::FabricPlan(const Topology& topology, const Failures& failures)
    : topology_(topology),
      failures_(failures),
      live_(std::in_place, topology, failures),
      base_(topology.hubs()),
      closed_(static_cast<std::size_t>(topology.supernodes())),
      tables_(topology.nodes()),
      edits_(topology.hubs()),
      supernodes_changed_(static_cast<std::size_t>(topology.supernodes()), true),
      hubs_changed_(topology.hubs(), true) {
  const auto supernodes = static_cast<std::size_t>(topology.supernodes());
  for (std::unique_ptr<Rows>& rows : edits_) {
    rows = std::make_unique<Rows>();
    rows->own_d.resize(supernodes);
    rows->toward.resize(supernodes);
    if (parallel()) rows->striped.resize(supernodes);
  }
  PlanPairs();
  PlanDetours();
  closed_ = CloseMiddles();
  MakeHubs();
}

void FabricPlan::Update(const Failures& failures) {
  pool_ = TablePool();
  supernodes_changed_.assign(supernodes_changed_.size(), false);
  hubs_changed_.assign(Hubs(), false);
  pairs_changed_.clear();
  MarkChanges(failures_, failures);
  failures_ = failures;
  live_.emplace(topology_, failures);
  PlanPairs();
  std::vector<TableEntry> entries = std::exchange(entries_, {});
  PlanDetours();
  std::vector<TableEntry> different;
  const auto before = [](const TableEntry& a, const TableEntry& b) {
    return std::tie(a.node, a.in_port, a.intra, a.destination, a.ports) <
           std::tie(b.node, b.in_port, b.intra, b.destination, b.ports);
  };
  std::set_symmetric_difference(entries.begin(), entries.end(), entries_.begin(), entries_.end(),
                                std::back_inserter(different), before);
  MarkEntries(different);
  std::vector<ClosedMiddles> closed = CloseMiddles();
  for (NodeId node = 0; node < Hubs(); ++node) {
    const auto supernode = static_cast<std::size_t>(topology_.supernode_of(node));
    if (supernodes_changed_[supernode] || edits_[node]) hubs_changed_[node] = true;
    if (hubs_changed_[node] || closed[supernode] == closed_[supernode]) continue;
    auto hub = std::make_shared<HubTables>(*tables_[node]);
    hub->closed_middles = closed[supernode];
    tables_[node] = std::move(hub);
  }
  closed_ = std::move(closed);
  MakeHubs();
}

void FabricPlan::MarkLink(NodeId node, PortId port) {
  if (node >= Hubs() || port >= kLinkPorts) return;
  const LinkEnd peer = topology_.Peer(node, port);
  if (peer.node >= Hubs()) return;  // nothing, a blade or a gateway
  const int from = topology_.supernode_of(node), to = topology_.supernode_of(peer.node);
  if (from == to) {
    supernodes_changed_[static_cast<std::size_t>(from)] = true;
  } else {
    pairs_changed_.emplace_back(from, to);
    pairs_changed_.emplace_back(to, from);
  }
}

void FabricPlan::MarkChanges(const Failures& before, const Failures& after) {
  std::vector<std::pair<NodeId, PortId>> links;
  std::set_symmetric_difference(before.links.begin(), before.links.end(), after.links.begin(),
                                after.links.end(), std::back_inserter(links));
  for (const auto& [node, port] : links) MarkLink(node, port);
  std::vector<NodeId> hubs;
  std::set_symmetric_difference(before.hubs.begin(), before.hubs.end(), after.hubs.begin(),
                                after.hubs.end(), std::back_inserter(hubs));
  for (const NodeId node : hubs) {
    if (node >= Hubs()) continue;  // MakeHubs looks at all others every time
    supernodes_changed_[static_cast<std::size_t>(topology_.supernode_of(node))] = true;
    for (int port = kDFirst; port < kHfiFirst; ++port) MarkLink(node, static_cast<PortId>(port));
  }
}

// Ports on the shortest ways to each hub of the own supernode, at most `hops_max` L hops long.
std::vector<PortMask> FabricPlan::Intra(NodeId node, int hops_max) const {
  const int hubs = topology_.hubs_per_supernode(), supernode = topology_.supernode_of(node);
  const int own = topology_.hub_in_supernode(node);
  std::vector<PortMask> ports(static_cast<std::size_t>(hubs));
  HubMask wanted = live_->hub(node) ? live_->hubs(supernode) & ~HubBit(own) : 0;
  for (int hops = 1; hops <= hops_max && wanted; ++hops) {
    const HubMask reached = live_->Within(node, hops) & wanted;
    for (HubMask rest = reached; rest; rest &= rest - 1) {
      const int destination = std::countr_zero(rest);
      const HubMask closer = live_->Within(topology_.node(supernode, destination), hops - 1);
      ports[static_cast<std::size_t>(destination)] =
          live_->LPorts(own, live_->neighbors(node) & closer);
    }
    wanted &= ~reached;
  }
  return ports;
}

void FabricPlan::SetRow(NodeId node, int to, PortMask own_d, PortMask toward, PortMask striped) {
  const auto i = static_cast<std::size_t>(to);
  std::unique_ptr<Rows>& rows = edits_[node];
  if (!rows) {
    const BaseTables& base = base_[node];
    if (base.own_d->inter[i] == own_d && base.toward->inter[i] == toward &&
        (!parallel() || base.striped->inter[i] == striped)) {
      return;
    }
    rows = std::make_unique<Rows>();
    rows->own_d = base.own_d->inter;
    rows->toward = base.toward->inter;
    if (parallel()) rows->striped = base.striped->inter;
  }
  rows->own_d[i] = own_d;
  rows->toward[i] = toward;
  if (parallel()) rows->striped[i] = striped;
}

void FabricPlan::PlanPair(int from, int to) {
  live_->DLinks(from, to, &links_);
  HubMask exits = 0, reaches = 0;
  std::array<PortMask, 32> own_d{};
  bool closed = true;
  for (const DLink& link : links_) {
    // A link that lands where some hubs are out of reach serves only sources without a better
    // route.
    const HubMask landing = live_->Landing(topology_.node(to, link.landing), kD0);
    if (std::popcount(landing) < live_->landing_max(to) || (reaches && landing != reaches))
      continue;
    // After D1 one L hop is left.
    const bool all = live_->Within(topology_.node(to, link.landing), 1) == live_->hubs(to);
    closed = reaches ? closed || !all : !all;
    reaches = landing;
    exits |= HubBit(link.exit);
    own_d[static_cast<std::size_t>(link.exit)] |= PortBit(link.port);
  }
  closed_pairs_.erase({from, to});
  if (closed && live_->hubs(from) && live_->hubs(to)) closed_pairs_[{from, to}] = true;
  std::vector<NodeId> stranded;
  for (int hub = 0; hub < topology_.hubs_per_supernode(); ++hub) {
    const NodeId node = topology_.node(from, hub);
    const PortMask own = own_d[static_cast<std::size_t>(hub)];
    const PortMask over_exits = live_->LPorts(hub, exits & live_->neighbors(node));
    const bool alive = (live_->hubs(from) & HubBit(hub)) != 0;
    const PortMask toward = !alive ? 0 : own ? own : over_exits;
    SetRow(node, to, own, toward, alive ? own | over_exits : 0);
    if (alive && !toward && live_->hubs(to)) stranded.push_back(node);
  }
  stranded_.erase({from, to});
  if (!stranded.empty()) stranded_[{from, to}] = std::move(stranded);
}

void FabricPlan::PlanPairs() {
  const int supernodes = topology_.supernodes();
  for (int from = 0; from < supernodes; ++from) {
    for (int to = 0; to < supernodes; ++to) {
      if (from == to) continue;
      if (supernodes_changed_[static_cast<std::size_t>(from)] ||
          supernodes_changed_[static_cast<std::size_t>(to)]) {
        PlanPair(from, to);
      }
    }
  }
  for (const auto& [from, to] : pairs_changed_) PlanPair(from, to);
}

void FabricPlan::PlanDetours() {
  if (failures_.empty()) return;
  Detours::Ports own_d, toward;
  for (NodeId node = 0; node < Hubs(); ++node) {
    own_d.push_back(OwnD(node).data());
    toward.push_back(Toward(node).data());
  }
  Detours detours(topology_, *live_, own_d, toward);
  std::vector<std::pair<NodeId, int>> stranded;
  for (const auto& [pair, nodes] : stranded_) {
    for (const NodeId node : nodes) stranded.emplace_back(node, pair.second);
  }
  std::vector<int> served(stranded.size(), -1);
  for (bool better = true; better;) {
    better = false;
    for (std::size_t i = 0; i < stranded.size(); ++i) {
      if (served[i] == live_->landing_max(stranded[i].second)) continue;
      const int now = detours.AddInter(stranded[i].first, stranded[i].second);
      better = better || now > served[i];
      served[i] = now;
    }
  }
  for (NodeId node = 0; topology_.supernodes() > 1 && node < Hubs(); ++node) {
    if (!live_->hub(node)) continue;
    HubMask wanted = live_->hubs(topology_.supernode_of(node)) & ~live_->Within(node, 3);
    for (; wanted; wanted &= wanted - 1) detours.AddIntra(node, std::countr_zero(wanted));
  }
  entries_ = detours.Entries();
}

// The hubs of these entries, and those whose striped tables depend on them.
void FabricPlan::MarkEntries(const std::vector<TableEntry>& entries) {
  for (const TableEntry& entry : entries) {
    hubs_changed_[entry.node] = true;
    if (entry.in_port != kNoPort) {
      hubs_changed_[topology_.Peer(entry.node, entry.in_port).node] = true;
    }
  }
}

std::vector<FabricPlan::ClosedMiddles> FabricPlan::CloseMiddles() const {
  ClosedMiddles everywhere;
  for (const auto& [pair, closed] : closed_pairs_) {
    everywhere.push_back(HubTables::ClosedMiddle(pair.second, pair.first));
  }
  std::vector<ClosedMiddles> all(closed_.size(), everywhere);
  // Packets that land on a hub without an onward route: closed for the supernodes whose links land
  // there.
  for (const auto& [pair, nodes] : stranded_) {
    if (closed_pairs_.count(pair)) continue;
    for (const NodeId node : nodes) {
      for (PortMask ports = live_->ports(node) >> kDFirst << kDFirst; ports; ports &= ports - 1) {
        const LinkEnd far = topology_.Peer(node, static_cast<PortId>(std::countr_zero(ports)));
        if (!(OwnD(far.node)[static_cast<std::size_t>(pair.first)] & PortBit(far.port))) continue;
        all[static_cast<std::size_t>(topology_.supernode_of(far.node))].push_back(
            HubTables::ClosedMiddle(pair.second, pair.first));
      }
    }
  }
  for (std::size_t s = 0; s < all.size(); ++s) {
    ClosedMiddles& closed = all[s];
    std::sort(closed.begin(), closed.end());
    closed.erase(std::unique(closed.begin(), closed.end()), closed.end());
    // Never used: packets to and over the own supernode.
    std::erase_if(closed, [s](std::uint32_t c) { return c >> 16 == s || (c & 0xffff) == s; });
  }
  return all;
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

// Where detours changed what an exit hub does with packets from here, that exit hub is left out; a
// supernode that is reached by detours only is reached by them here too.
std::shared_ptr<const RouteTable> FabricPlan::MakeStriped(NodeId node, const RouteTable& direct) {
  std::vector<PortMask> striped = base_[node].striped->inter;
  const int supernode = topology_.supernode_of(node);
  const auto first =
      std::lower_bound(entries_.begin(), entries_.end(), topology_.node(supernode, 0),
                       [](const TableEntry& entry, NodeId n) { return entry.node < n; });
  for (auto entry = first;
       entry != entries_.end() && topology_.supernode_of(entry->node) == supernode; ++entry) {
    if (entry->intra || !IsL(entry->in_port)) continue;
    const LinkEnd before = topology_.Peer(entry->node, entry->in_port);
    if (before.node != node) continue;
    striped[static_cast<std::size_t>(entry->destination)] &= ~PortBit(before.port);
  }
  for (std::size_t i = 0; i < striped.size(); ++i) {
    if (striped[i] == 0) striped[i] = direct.inter[i];
  }
  return pool_.Intern({direct.intra, std::move(striped)});
}

// REQUIRES: rows in edits_, or tables of the last update in base_.
void FabricPlan::MakeBase(NodeId node, const std::vector<PortMask>& intra) {
  BaseTables& base = base_[node];
  std::unique_ptr<Rows> rows = std::move(edits_[node]);
  const auto make = [&](std::shared_ptr<const RouteTable>* table,
                        std::vector<PortMask> Rows::*row) {
    *table = pool_.Intern({intra, rows ? (*rows).*row : (*table)->inter});
  };
  make(&base.own_d, &Rows::own_d);
  make(&base.toward, &Rows::toward);
  if (parallel()) make(&base.striped, &Rows::striped);
}

std::shared_ptr<const HubTables> FabricPlan::MakeHub(NodeId node) {
  const auto supernodes = static_cast<std::size_t>(topology_.supernodes());
  const int supernode = topology_.supernode_of(node);
  auto hub = std::make_shared<HubTables>();
  std::vector<PortMask> intra = Intra(node, 2);
  MakeBase(node, intra);
  const auto& [own_d, toward, striped] = base_[node];
  // Direct packets that land over a D link are in their supernode, unless a detour says otherwise.
  const auto landed = pool_.Intern({std::move(intra), std::vector<PortMask>(supernodes)});
  const auto source = pool_.Intern({Intra(node, 3), toward->inter});
  hub->source_direct = WithDetours(source, node, kNoPort);
  hub->source_striped = parallel() ? MakeStriped(node, *hub->source_direct) : hub->source_direct;
  hub->source_indirect = toward;
  for (int p = 0; p < kLinkPorts; ++p) {
    const PortId port = static_cast<PortId>(p);
    // A direct packet on an L port finds the way to other exit hubs too: one that is in flight when
    // its D link goes down still has positions left for L1 D1 L2.
    hub->port_direct[port] = WithDetours(IsL(port) ? toward : landed, node, port);
    hub->port_indirect[port] = IsL(port) ? own_d : toward;
    const NodeId peer = topology_.Peer(node, port).node;
    if (peer == kNoNode || peer < Hubs()) continue;
    hub->port_direct[port] = hub->source_direct;
    hub->port_indirect[port] = hub->source_indirect;
  }
  hub->closed_middles = closed_[static_cast<std::size_t>(supernode)];
  return hub;
}

// Everything goes to the hub that the blade is plugged into, as long as that link is up.
std::shared_ptr<const HubTables> FabricPlan::MakeBlade(NodeId blade) {
  const LinkEnd socket = topology_.BladePeer(blade);
  const bool live = topology_.ExitHub(blade) != kNoNode && live_->hub(socket.node) &&
                    !failures_.links.contains({socket.node, socket.port});
  const auto hubs = static_cast<std::size_t>(topology_.hubs_per_supernode());
  const auto supernodes = static_cast<std::size_t>(topology_.supernodes());
  auto tables = std::make_shared<HubTables>();
  const PortMask out = live ? PortBit(kBladePort) : 0;
  tables->source_direct =
      pool_.Intern({std::vector<PortMask>(hubs, out), std::vector<PortMask>(supernodes, out)});
  tables->source_striped = tables->source_indirect = tables->source_direct;
  const auto none = pool_.Intern({std::vector<PortMask>(hubs), std::vector<PortMask>(supernodes)});
  tables->port_direct.fill(none);
  tables->port_indirect.fill(none);
  return tables;
}

void FabricPlan::MakeHubs() {
  for (NodeId node = 0; node < Hubs(); ++node) {
    if (hubs_changed_[node]) tables_[node] = MakeHub(node);
  }
  for (NodeId blade = topology_.hubs(); blade < topology_.nodes(); ++blade) {
    if (!topology_.in_tree(blade)) tables_[blade] = MakeBlade(blade);
  }
  if (topology_.has_tree()) PlanForwarding(topology_, failures_, &tables_);
}

}  // namespace percs
