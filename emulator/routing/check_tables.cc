#include <algorithm>
#include <bit>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "emulator/routing/channel_graph.h"
#include "emulator/routing/check_blades.h"
#include "emulator/routing/check_indirect.h"
#include "emulator/routing/check_multicast.h"
#include "emulator/routing/clock_plan.h"
#include "emulator/routing/forwarding.h"
#include "emulator/routing/graph_plan.h"
#include "emulator/routing/legal_reach.h"
#include "emulator/routing/live_fabric.h"
#include "emulator/routing/planner.h"
#include "emulator/routing/table_error.h"
#include "fmt/format.h"

namespace percs {
namespace {

// Where a packet is: it came in on `in_port` (kNoPort: from the HFI) at `position`.
struct Place {
  NodeId node;
  PortId in_port;
  Position position;
  TableKind kind = TableKind::kDirect;
};

// A walk that went wrong.
struct Fault {
  std::string walk, reason;
  bool dead_link = false;
};

class TableCheck {
 public:
  TableCheck(const Topology& topology, const Failures& failures, const TableSet& tables,
             VcPolicy policy)
      : topology_(topology),
        failures_(failures),
        live_(topology, failures),
        tables_(tables),
        legal_(topology, live_),
        channels_(topology, policy),
        landings_(static_cast<std::size_t>(topology.hubs()) * kDPorts * 2) {}

  absl::StatusOr<CheckReport> Run();

 private:
  // What a packet that landed can reach in its supernode; filled when first asked for.
  struct Landing {
    bool known = false;
    std::int8_t hops = 0;  // most on the way to any of `reaches`
    HubMask reaches = 0;
  };
  using PlaceSet = absl::flat_hash_set<std::uint64_t>;
  static std::uint64_t Key(const Place& place) {
    return static_cast<std::uint64_t>(place.node) << 8 | place.in_port;
  }

  absl::Status CheckShapes() const;
  absl::Status CheckNoDeadPorts() const;
  absl::Status CheckSource(NodeId source);
  absl::Status CheckStriped(NodeId source, int supernode, HubMask served);
  absl::Status JudgeMissing(NodeId source, int supernode, HubMask served, HubMask missing);
  PortMask Choices(const Place& place, NodeId destination) const;
  // The place after leaving by `port`; its node is kNoNode if no packet gets there.
  Place Follow(const Place& place, PortId port) const;
  Place Walk(const Place& place, PortId port);
  HubMask ToSupernode(const Place& place, int supernode, int hops, int* hops_max);
  bool ToHub(const Place& place, NodeId destination, int hops, int* hops_max);
  const Landing& Landed(const Place& place);
  const PlaceSet& UsedOnTheWayTo(int supernode);
  void MarkUsed(const Place& place, NodeId destination);
  bool Improvable(NodeId source, NodeId destination, HubMask served);
  bool Finds(const Place& place, int supernode, HubMask required, PlaceSet* seen) const;
  bool Explain(const Place& place, NodeId destination, Fault* fault) const;

  const Topology& topology_;
  const Failures& failures_;
  const LiveFabric live_;
  const TableSet& tables_;
  LegalReach legal_;
  ChannelGraph channels_;
  std::vector<Landing> landings_;  // by node, D port, position D0 or D1
  int used_for_ = -1;              // the supernode that `used_` is about
  PlaceSet used_;
  CheckReport report_;
};

absl::Status TableCheck::CheckShapes() const {
  if (tables_.size() != topology_.nodes()) {
    return TablesWrong(fmt::format("there are tables for {} nodes, but the topology has {}",
                                   tables_.size(), topology_.nodes()));
  }
  const auto hubs = static_cast<std::size_t>(topology_.hubs_per_supernode());
  const auto supernodes = static_cast<std::size_t>(topology_.supernodes());
  const auto fits = [&](const std::shared_ptr<const RouteTable>& table) {
    return table && table->intra.size() == hubs && table->inter.size() == supernodes;
  };
  for (NodeId node = 0; node < topology_.hubs(); ++node) {
    const HubTables* hub = tables_[node].get();
    bool good =
        hub && fits(hub->source_direct) && fits(hub->source_striped) && fits(hub->source_indirect);
    for (std::size_t port = 0; good && port < kLinkPorts; ++port) {
      good = fits(hub->port_direct[port]) && fits(hub->port_indirect[port]);
    }
    if (good) continue;
    return TablesWrong(
        fmt::format("{} has a table that is missing or not of {} hubs and {} supernodes",
                    topology_.NodeName(node), hubs, supernodes));
  }
  return absl::OkStatus();
}

// Entries that no direct walk uses must not lead to failed links either.
absl::Status TableCheck::CheckNoDeadPorts() const {
  for (NodeId node = 0; node < topology_.hubs(); ++node) {
    if (!live_.hub(node)) continue;
    const HubTables& hub = *tables_[node];
    std::vector<const RouteTable*> seen;
    const auto dead = [&](const std::shared_ptr<const RouteTable>& table) -> PortMask {
      if (std::find(seen.begin(), seen.end(), table.get()) != seen.end()) return 0;
      seen.push_back(table.get());
      PortMask all = 0;
      for (PortMask mask : table->intra) all |= mask;
      for (PortMask mask : table->inter) all |= mask;
      return all & ~live_.ports(node);
    };
    PortMask bad = dead(hub.source_direct) | dead(hub.source_striped) | dead(hub.source_indirect);
    for (std::size_t port = 0; port < kLinkPorts; ++port) {
      bad |= dead(hub.port_direct[port]) | dead(hub.port_indirect[port]);
    }
    if (!bad) continue;
    const LinkEnd end{node, static_cast<PortId>(std::countr_zero(bad))};
    return TablesWrong(fmt::format(
        "a table of {} names {}, which is {}", topology_.NodeName(node), topology_.LinkName(end),
        end.port < kLinkPorts && topology_.connected(node, end.port) ? "down" : "not a link"));
  }
  return absl::OkStatus();
}

PortMask TableCheck::Choices(const Place& place, NodeId destination) const {
  const RouteTable& table = *tables_[place.node]->Table(place.kind, place.in_port);
  const int supernode = topology_.supernode_of(destination);
  return supernode == topology_.supernode_of(place.node)
             ? table.intra[static_cast<std::size_t>(topology_.hub_in_supernode(destination))]
             : table.inter[static_cast<std::size_t>(supernode)];
}

Place TableCheck::Follow(const Place& place, PortId port) const {
  const Position next = port < kLinkPorts ? NextPosition(place.position, port) : kNoPosition;
  if (next == kNoPosition || !live_.port(place.node, port)) return {kNoNode, kNoPort, kNoPosition};
  const LinkEnd peer = topology_.Peer(place.node, port);
  return {peer.node, peer.port, next};
}

Place TableCheck::Walk(const Place& place, PortId port) {
  const Place next = Follow(place, port);
  if (next.node != kNoNode && place.in_port != kNoPort) {
    channels_.Add(place.node, place.in_port, place.position, port);
  }
  return next;
}

// Hubs of `supernode` that every walk from here ends at.
HubMask TableCheck::ToSupernode(const Place& place, int supernode, int hops, int* hops_max) {
  PortMask ports = Choices(place, topology_.node(supernode, 0));
  HubMask reaches = ports ? ~HubMask{0} : 0;
  for (; ports; ports &= ports - 1) {
    const PortId port = static_cast<PortId>(std::countr_zero(ports));
    const Place next = Walk(place, port);
    if (next.node == kNoNode) {
      reaches = 0;
    } else if (topology_.supernode_of(next.node) == supernode) {
      const Landing& landing = Landed(next);
      reaches &= landing.reaches;
      *hops_max = std::max(*hops_max, hops + 1 + landing.hops);
    } else {
      reaches &= ToSupernode(next, supernode, hops + 1, hops_max);
    }
  }
  return reaches;
}

bool TableCheck::ToHub(const Place& place, NodeId destination, int hops, int* hops_max) {
  if (place.node == destination) {
    *hops_max = std::max(*hops_max, hops);
    return true;
  }
  PortMask ports = Choices(place, destination);
  bool good = ports != 0;
  const int supernode = topology_.supernode_of(destination);
  for (; ports; ports &= ports - 1) {
    const Place next = Walk(place, static_cast<PortId>(std::countr_zero(ports)));
    if (next.node == kNoNode) {
      good = false;
    } else if (topology_.supernode_of(next.node) == supernode) {
      good &= ToHub(next, destination, hops + 1, hops_max);
    } else {
      const HubMask back = ToSupernode(next, supernode, hops + 1, hops_max);
      good &= (back & HubBit(topology_.hub_in_supernode(destination))) != 0;
    }
  }
  return good;
}

const TableCheck::Landing& TableCheck::Landed(const Place& place) {
  const std::size_t index =
      (static_cast<std::size_t>(place.node) * kDPorts + (place.in_port - kDFirst)) * 2 +
      (place.position == kD1);
  Landing& landing = landings_[index];
  if (landing.known) return landing;
  landing.known = true;
  const int supernode = topology_.supernode_of(place.node);
  for (HubMask rest = live_.hubs(supernode); rest; rest &= rest - 1) {
    const int hub = std::countr_zero(rest);
    int hops = 0;
    if (!ToHub(place, topology_.node(supernode, hub), 0, &hops)) continue;
    landing.reaches |= HubBit(hub);
    landing.hops = std::max(landing.hops, static_cast<std::int8_t>(hops));
  }
  return landing;
}

absl::Status TableCheck::CheckSource(NodeId source) {
  const Place start{source, kNoPort, kInjected};
  const int own = topology_.supernode_of(source);
  for (int supernode = 0; supernode < topology_.supernodes(); ++supernode) {
    const HubMask wanted = live_.hubs(supernode);
    HubMask served = 0;
    if (!wanted) continue;
    if (supernode != own) {
      served = ToSupernode(start, supernode, 0, &report_.hops_max) & wanted;
      if (auto s = CheckStriped(source, supernode, served); !s.ok()) return s;
    } else {
      for (HubMask rest = wanted; rest; rest &= rest - 1) {
        const int hub = std::countr_zero(rest);
        if (ToHub(start, topology_.node(own, hub), 0, &report_.hops_max)) served |= HubBit(hub);
      }
    }
    if (served == wanted) continue;
    if (auto s = JudgeMissing(source, supernode, served, wanted & ~served); !s.ok()) return s;
  }
  return absl::OkStatus();
}

// Striped packets get wherever direct ones do.
absl::Status TableCheck::CheckStriped(NodeId source, int supernode, HubMask served) {
  const HubTables& hub = *tables_[source];
  const Place start{source, kNoPort, kInjected, TableKind::kStriped};
  if (hub.source_striped == hub.source_direct) return absl::OkStatus();
  const HubMask missing = served & ~ToSupernode(start, supernode, 0, &report_.hops_max);
  if (!missing) return absl::OkStatus();
  const NodeId destination = topology_.node(supernode, std::countr_zero(missing));
  Fault fault;
  Explain(start, destination, &fault);
  return TablesWrong(fmt::format("{} to {}, striped: {} {}", topology_.NodeName(source),
                                 topology_.NodeName(destination), fault.walk, fault.reason));
}

absl::Status TableCheck::JudgeMissing(NodeId source, int supernode, HubMask served,
                                      HubMask missing) {
  for (; missing; missing &= missing - 1) {
    const NodeId destination = topology_.node(supernode, std::countr_zero(missing));
    Fault fault;
    Explain({source, kNoPort, kInjected}, destination, &fault);
    const bool reachable = legal_.From(source)[destination] != kNoPosition;
    const bool excused = reachable && !Improvable(source, destination, served);
    if (fault.dead_link || (reachable && !excused)) {
      return TablesWrong(fmt::format("{} to {}: {} {}", topology_.NodeName(source),
                                     topology_.NodeName(destination), fault.walk, fault.reason));
    }
    ++report_.unreachable_pairs;
    if (report_.unreachable.size() >= CheckReport::kListedMax) continue;
    std::string witness;
    if (excused) {
      witness =
          "tables choose by supernode, and every route to this hub would cut off others of its "
          "supernode";
    } else if (const std::string path = legal_.AnyPath(source, destination); !path.empty()) {
      witness = fmt::format("no path fits L0 D0 L1 D1 L2; the shortest is {}", path);
    } else {
      witness = "no live path at all";
    }
    report_.unreachable.push_back({source, destination, std::move(witness)});
  }
  return absl::OkStatus();
}

// Places that packets to this supernode pass on walks that work, before they land there.
const TableCheck::PlaceSet& TableCheck::UsedOnTheWayTo(int supernode) {
  if (used_for_ == supernode) return used_;
  used_for_ = supernode;
  used_.clear();
  int hops = 0;
  for (NodeId source = 0; source < topology_.hubs(); ++source) {
    if (!live_.hub(source)) continue;
    const Place start{source, kNoPort, kInjected};
    if (topology_.supernode_of(source) != supernode) {
      if (ToSupernode(start, supernode, 0, &hops)) MarkUsed(start, topology_.node(supernode, 0));
      continue;
    }
    for (HubMask rest = live_.hubs(supernode) & ~live_.Within(source, 3); rest; rest &= rest - 1) {
      const NodeId destination = topology_.node(supernode, std::countr_zero(rest));
      if (ToHub(start, destination, 0, &hops)) MarkUsed(start, destination);
    }
  }
  return used_;
}

void TableCheck::MarkUsed(const Place& place, NodeId destination) {
  if (topology_.supernode_of(place.node) == topology_.supernode_of(destination)) {
    if (IsD(place.in_port)) return;       // landed
  } else if (place.in_port != kNoPort) {  // a source table is its hub's alone
    used_.insert(Key(place));
  }
  for (PortMask ports = Choices(place, destination); ports; ports &= ports - 1) {
    MarkUsed(Follow(place, static_cast<PortId>(std::countr_zero(ports))), destination);
  }
}

// Tables choose by place and destination supernode, so packets that meet at a place, and hubs that
// no common landing serves, compete. It is correct to give a pair up if every legal path would
// change an entry that others need, or land where hubs that the source reaches now would be lost.
bool TableCheck::Improvable(NodeId source, NodeId destination, HubMask served) {
  const int supernode = topology_.supernode_of(destination);
  const HubMask hub = HubBit(topology_.hub_in_supernode(destination));
  const bool inside = supernode == topology_.supernode_of(source);
  if (inside && live_.Within(source, 3) & hub) return true;
  const HubMask required = inside ? hub : served | hub;
  bool landing = false;  // does any such path exist?
  for (int h = 0; h < topology_.hubs_per_supernode(); ++h) {
    landing = landing || !(required & ~live_.Landing(topology_.node(supernode, h), kD0));
  }
  if (!landing) return false;
  UsedOnTheWayTo(supernode);
  PlaceSet seen;
  return Finds({source, kNoPort, kInjected}, supernode, required, &seen);
}

bool TableCheck::Finds(const Place& place, int supernode, HubMask required, PlaceSet* seen) const {
  if (!seen->insert(Key(place) << 8 | static_cast<std::uint8_t>(place.position + 1)).second)
    return false;
  PortMask ports = live_.ports(place.node);
  if (used_.contains(Key(place))) ports &= Choices(place, topology_.node(supernode, 0));
  for (; ports; ports &= ports - 1) {
    const Place next = Follow(place, static_cast<PortId>(std::countr_zero(ports)));
    if (next.node == kNoNode || next.position > kD1) continue;
    if (IsD(next.in_port) && topology_.supernode_of(next.node) == supernode) {
      if (!(required & ~live_.Landing(next.node, next.position))) return true;
    } else if (next.position < kD1 && Finds(next, supernode, required, seen)) {
      return true;
    }
  }
  return false;
}

// False with the first walk that does not end at `destination`, true if all do.
bool TableCheck::Explain(const Place& place, NodeId destination, Fault* fault) const {
  const std::size_t length = fault->walk.size();
  fault->walk += topology_.NodeName(place.node);
  if (place.node != destination) {
    PortMask ports = Choices(place, destination);
    if (!ports) {
      fault->reason = "has no route";
      return false;
    }
    for (; ports; ports &= ports - 1) {
      const PortId port = static_cast<PortId>(std::countr_zero(ports));
      const Place next = Follow(place, port);
      if (next.node == kNoNode) {
        fault->dead_link = port >= kLinkPorts || !live_.port(place.node, port);
        fault->reason = fmt::format(
            "would leave by {}, {}", topology_.LinkName({place.node, port}),
            fault->dead_link ? "which is not a live link" : "for which no VC position is left");
        return false;
      }
      const std::size_t here = fault->walk.size();
      fault->walk += " > ";
      if (!Explain(next, destination, fault)) return false;
      fault->walk.resize(here);
    }
  }
  fault->walk.resize(length);
  return true;
}

absl::StatusOr<CheckReport> TableCheck::Run() {
  if (auto s = CheckShapes(); !s.ok()) return s;
  for (NodeId source = 0; source < topology_.hubs(); ++source) {
    if (!live_.hub(source)) continue;
    if (auto s = CheckSource(source); !s.ok()) return s;
  }
  if (auto s = CheckNoDeadPorts(); !s.ok()) return s;
  if (auto s = CheckBlades(topology_, live_, failures_, tables_, &report_); !s.ok()) return s;
  if (topology_.has_tree()) {
    if (auto s = CheckForwarding(topology_, failures_, tables_, &report_); !s.ok()) return s;
  }
  if (auto s = IndirectCheck(topology_, live_, tables_, &channels_).Run(&report_.indirect_hops_max);
      !s.ok()) {
    return s;
  }
  if (auto s = CheckMulticast(topology_, live_, tables_, &channels_, &report_); !s.ok()) return s;
  if (const std::string cycle = channels_.FindCycle(); !cycle.empty()) {
    return TablesWrong("packets may wait for each other in a cycle of channels: " + cycle);
  }
  return std::move(report_);
}

}  // namespace

absl::StatusOr<CheckReport> CheckTables(const Topology& topology, const Failures& failures,
                                        const TableSet& tables, VcPolicy policy) {
  auto report = topology.graph() != nullptr ? CheckGraphTables(topology, failures, tables, policy)
                                            : TableCheck(topology, failures, tables, policy).Run();
  if (report.ok() && topology.spec().clock) {
    if (auto s = CheckClock(topology, LivePorts(topology, failures), tables); !s.ok()) return s;
  }
  return report;
}

}  // namespace percs
