// Proves the tables of a network of switches: follows every choice of every pair.
#include <algorithm>
#include <bit>

#include "absl/status/status.h"
#include "emulator/routing/check_multicast.h"
#include "emulator/routing/graph_multicast.h"
#include "emulator/routing/graph_plan.h"
#include "emulator/routing/live_fabric.h"
#include "emulator/routing/table_error.h"
#include "fmt/format.h"

namespace percs {
namespace {

class GraphCheck {
 public:
  GraphCheck(const Topology& topology, const Failures& failures, const TableSet& tables,
             VcPolicy policy)
      : topology_(topology),
        graph_(*topology.graph()),
        failures_(failures),
        tables_(tables),
        policy_(policy),
        live_(LivePorts(topology, failures)),
        seen_(Channels()),
        waits_(Channels() * kMaxVcs) {}

  absl::StatusOr<CheckReport> Run() {
    if (auto s = CheckShapes(); !s.ok()) return s;
    for (NodeId to = 0; to < graph_.switches(); ++to) {
      if (failures_.hubs.contains(to)) continue;
      if (auto s = CheckDestination(to); !s.ok()) return s;
    }
    if (auto s = CheckGroups(); !s.ok()) return s;
    if (const std::string cycle = FindCycle(); !cycle.empty())
      return TablesWrong("packets may wait for each other in a cycle of channels: " + cycle);
    return std::move(report_);
  }

 private:
  enum : int { kNew = -1, kOnPath = -2 };
  // A packet at `node` that came in by `in` (kNoPort: it is new) on `vc`.
  struct Place {
    NodeId node;
    PortId in;
    VcId vc;
  };
  static constexpr std::size_t kPlacesOfNode = (SwitchGraph::kPortsMax + 1) * kMaxVcs;

  std::size_t Channels() const { return graph_.switches() * kPlacesOfNode; }
  static std::size_t Index(const Place& place) {
    const std::size_t in = place.in < SwitchGraph::kPortsMax ? place.in : SwitchGraph::kPortsMax;
    return place.node * kPlacesOfNode + in * kMaxVcs + place.vc;
  }
  static Place PlaceOf(std::size_t index) {
    const std::size_t in = index % kPlacesOfNode / kMaxVcs;
    return {static_cast<NodeId>(index / kPlacesOfNode),
            in < SwitchGraph::kPortsMax ? static_cast<PortId>(in) : kNoPort,
            static_cast<VcId>(index % kMaxVcs)};
  }

  absl::Status CheckShapes() const;
  absl::Status CheckDestination(NodeId to);
  absl::Status CheckGroups();
  // Hops that are left at most, as `*hops`.
  absl::Status Follow(const Place& place, NodeId to, int* hops);
  // About the way so far.
  absl::Status Wrong(NodeId to, const std::string& what) const;
  void NoteMissing(NodeId from, NodeId to);
  std::string FindCycle();
  bool Visit(std::size_t channel, std::string* cycle);

  const Topology& topology_;
  const SwitchGraph& graph_;
  const Failures& failures_;
  const TableSet& tables_;
  VcPolicy policy_;
  std::vector<PortMask> live_;
  std::vector<std::int32_t> seen_;  // by place: hops left, kNew or kOnPath, for one destination
  std::vector<PortMask> waits_;     // by place and next VC: ports that a packet there may wait for
  std::vector<NodeId> walk_;
  CheckReport report_;
};

absl::Status GraphCheck::CheckShapes() const {
  if (tables_.size() != topology_.nodes()) {
    return TablesWrong(fmt::format("there are tables for {} nodes, but the topology has {}",
                                   tables_.size(), topology_.nodes()));
  }
  const auto fits = [&](const std::shared_ptr<const RouteTable>& table) {
    return table && table->intra.size() == graph_.switches() && table->inter.size() == 1;
  };
  for (NodeId node = 0; node < graph_.switches(); ++node) {
    const HubTables* const hub = tables_[node].get();
    bool good = hub && fits(hub->source_direct);
    for (std::size_t port = 0; good && port < kLinkPorts; ++port)
      good = fits(hub->port_direct[port]);
    if (!good) {
      return TablesWrong(fmt::format("{} has a table that is missing or not of {} switches",
                                     topology_.NodeName(node), graph_.switches()));
    }
  }
  return absl::OkStatus();
}

void GraphCheck::NoteMissing(NodeId from, NodeId to) {
  ++report_.unreachable_pairs;
  if (report_.unreachable.size() < CheckReport::kListedMax)
    report_.unreachable.push_back({from, to, "no way up and then down over live links joins them"});
}

absl::Status GraphCheck::CheckDestination(NodeId to) {
  std::fill(seen_.begin(), seen_.end(), kNew);
  for (NodeId from = 0; from < graph_.switches(); ++from) {
    if (from == to || failures_.hubs.contains(from)) continue;
    if (tables_[from]->source_direct->intra[to] == 0) {
      // Only leaves have endpoints.
      if (from < graph_.leaves() && to < graph_.leaves()) NoteMissing(from, to);
      continue;
    }
    int hops = 0;
    if (auto s = Follow({from, kNoPort, 0}, to, &hops); !s.ok()) return s;
    report_.hops_max = std::max(report_.hops_max, hops);
  }
  return absl::OkStatus();
}

absl::Status GraphCheck::Wrong(NodeId to, const std::string& what) const {
  std::string way;
  for (const NodeId node : walk_) way += (way.empty() ? "" : " > ") + topology_.NodeName(node);
  return TablesWrong(fmt::format("{} {}, on the way to {}", way, what, topology_.NodeName(to)));
}

absl::Status GraphCheck::Follow(const Place& place, NodeId to, int* hops) {
  std::int32_t& state = seen_[Index(place)];
  if (state >= 0) {
    *hops = state;
    return absl::OkStatus();
  }
  walk_.push_back(place.node);
  if (state == kOnPath) return Wrong(to, "closes a loop");
  state = kOnPath;
  const HubTables& tables = *tables_[place.node];
  const PortMask choices = tables.Table(TableKind::kDirect, place.in)->intra[to];
  if (choices == 0) return Wrong(to, "has no route");
  int most = 0;
  for (PortMask rest = choices; rest; rest &= rest - 1) {
    const auto port = static_cast<PortId>(std::countr_zero(rest));
    if (!(live_[place.node] & PortBit(port))) {
      return Wrong(to, fmt::format("would leave by {}, which is not a live link",
                                   topology_.LinkName({place.node, port})));
    }
    VcId vc = 0;
    if (policy_ == VcPolicy::kPosition)
      vc = graph_.NextVc(place.node, place.in, place.vc, port, tables.Detours(to));
    if (vc == SwitchGraph::kNoVc) {
      return Wrong(to, fmt::format("would leave by {}, for which no VC is left",
                                   topology_.LinkName({place.node, port})));
    }
    waits_[Index(place) * kMaxVcs + vc] |= PortBit(port);
    const SwitchGraph::Far far = graph_.Peer(place.node, port);
    int left = 0;
    if (far.node != to) {
      if (auto s = Follow({far.node, far.port, vc}, to, &left); !s.ok()) return s;
    }
    most = std::max(most, left + 1);
  }
  walk_.pop_back();
  seen_[Index(place)] = *hops = most;
  return absl::OkStatus();
}

absl::Status GraphCheck::CheckGroups() {
  const auto vc_of = [](const TreePlace& here) {
    return here.in == kNoPort ? VcId{0} : VcOfPosition(here.position);
  };
  TreeRules rules;
  rules.alive = [&](NodeId node) { return !failures_.hubs.contains(node); };
  rules.live = [&](NodeId node, PortId port) { return (live_[node] & PortBit(port)) != 0; };
  rules.next = [&](NodeId group, const TreePlace& here, PortId out) {
    if (policy_ == VcPolicy::kSingle) return kL0;
    const bool detour = tables_[here.node]->Detours(group);
    const VcId vc = graph_.NextVc(here.node, here.in, vc_of(here), out, detour);
    return vc == SwitchGraph::kNoVc ? kNoPosition : PositionOf(out, vc);
  };
  rules.reach = [&](NodeId source) {
    const std::vector<LinkEnd> tree = DetourTree(topology_, live_, source);
    std::vector<bool> reached;
    for (const LinkEnd& by : tree) reached.push_back(by.node != kNoNode);
    return reached;
  };
  rules.may_wait = [&](const TreePlace& here, PortId out, Position next) {
    const std::size_t channel = Index({here.node, here.in, vc_of(here)});
    waits_[channel * kMaxVcs + VcOfPosition(next)] |= PortBit(out);
  };
  return CheckTrees(topology_, rules, tables_, &report_);
}

// Depth first over channels, named by the places behind them.
std::string GraphCheck::FindCycle() {
  std::fill(seen_.begin(), seen_.end(), kNew);
  std::string cycle;
  for (std::size_t channel = 0; channel < seen_.size(); ++channel) {
    if (PlaceOf(channel).in == kNoPort) continue;  // a packet that is new holds no channel
    if (Visit(channel, &cycle)) return cycle;
  }
  return "";
}

bool GraphCheck::Visit(std::size_t channel, std::string* cycle) {
  const Place place = PlaceOf(channel);
  const std::size_t length = cycle->size();
  if (seen_[channel] >= 0) return false;
  const SwitchGraph::Far sender = graph_.Peer(place.node, place.in);
  if (sender.node != kNoNode) {
    *cycle += fmt::format("{}{} VC{}", length == 0 ? "" : " > ",
                          topology_.LinkName({sender.node, sender.port}), place.vc);
  }
  if (seen_[channel] == kOnPath) return true;
  seen_[channel] = kOnPath;
  for (VcId vc = 0; vc < kMaxVcs; ++vc) {
    for (PortMask rest = waits_[channel * kMaxVcs + vc]; rest; rest &= rest - 1) {
      const auto port = static_cast<PortId>(std::countr_zero(rest));
      const SwitchGraph::Far far = graph_.Peer(place.node, port);
      if (Visit(Index({far.node, far.port, vc}), cycle)) return true;
    }
  }
  seen_[channel] = 0;
  cycle->resize(length);
  return false;
}

}  // namespace

absl::StatusOr<CheckReport> CheckGraphTables(const Topology& topology, const Failures& failures,
                                             const TableSet& tables, VcPolicy policy) {
  return GraphCheck(topology, failures, tables, policy).Run();
}

}  // namespace percs
