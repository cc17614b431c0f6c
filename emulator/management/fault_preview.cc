#include "emulator/management/fault_preview.h"

#include <algorithm>
#include <bit>
#include <set>
#include <tuple>

#include "absl/container/flat_hash_map.h"
#include "fmt/format.h"

namespace percs {
namespace {

using Link = std::pair<NodeId, PortId>;  // by its lower end

Link Lower(const Topology& topology, LinkEnd end) {
  const LinkEnd far = topology.Peer(end.node, end.port);
  return std::min(Link(end.node, end.port), Link(far.node, far.port));
}

class Touched {
 public:
  Touched(const FaultSpec& spec, const FaultTargets& targets, const FabricView& view)
      : spec_(spec), view_(view) {
    for (const FaultAction& action : ActionsOf(spec, targets, view.topology)) {
      if (!action.of_hub()) links_.insert(Lower(view.topology, action.end));
    }
    if (spec.kind == FaultKind::kTableDamage) damaged_ = {targets.hubs.begin(), targets.hubs.end()};
  }

  const std::set<Link>& links() const { return links_; }

  // Routes between two hubs that it touches.
  std::uint64_t Routes(NodeId source, NodeId destination) const {
    const Topology& t = view_.topology;
    const bool same = spec_.destination != kNoNode &&
                      (t.supernode_of(destination) == t.supernode_of(source)
                           ? destination == spec_.destination
                           : t.supernode_of(destination) == t.supernode_of(spec_.destination));
    counted_.clear();
    return From(source, kNoPort, destination, damaged_.count(source) > 0 && same, 0);
  }

 private:
  // Ways meet again, so each place is counted once.
  std::uint64_t From(NodeId node, PortId in, NodeId destination, bool touched, int hops) const {
    if (node == destination) return touched ? 1 : 0;
    const auto counted = counted_.find({node, in, touched});
    if (counted != counted_.end()) return counted->second;
    const Topology& t = view_.topology;
    const auto tables = view_.tables(node);
    if (!tables || hops == t.route_hops_max()) return touched ? 1 : 0;
    const bool intra = t.supernode_of(node) == t.supernode_of(destination);
    const TablePlace place{TableKind::kDirect, in, intra,
                           static_cast<std::uint16_t>(intra ? t.hub_in_supernode(destination)
                                                            : t.supernode_of(destination))};
    const RouteTable* table = tables->Table(place.kind, in).get();
    std::uint64_t routes = 0;
    for (PortMask ports = table ? table->Entry(place) : 0; ports != 0; ports &= ports - 1) {
      const PortId out = static_cast<PortId>(std::countr_zero(ports));
      const LinkEnd far = t.Peer(node, out);
      if (far.node == kNoNode) continue;
      const bool here = links_.count(Lower(t, {node, out})) > 0;
      routes += From(far.node, far.port, destination, touched || here, hops + 1);
    }
    return counted_[{node, in, touched}] = routes;
  }

  const FaultSpec& spec_;
  const FabricView& view_;
  std::set<Link> links_;
  std::set<NodeId> damaged_;
  // Of one pair of hubs: routes that touch, from a place on, by node, port and what came before.
  mutable absl::flat_hash_map<std::tuple<NodeId, PortId, bool>, std::uint64_t> counted_;
};

// Those of its links that it takes down. Random errors may do so too, if replay gives up; that
// cannot be predicted.
std::set<Link> TakenDown(const FaultSpec& spec, const std::set<Link>& links,
                         const P7ihParameters& parameters) {
  if (RowOf(spec.kind).cost == FaultCost::kLinksDown) return links;
  switch (spec.kind) {
    case FaultKind::kCorruptNext:
      if (!parameters.link_replay || static_cast<int>(spec.corrupt) < parameters.replay_limit)
        return {};
      return links;
    case FaultKind::kLaneLoss: {
      std::set<Link> short_of_lanes;
      for (const Link& link : links) {
        const LinkParameters& own = parameters.link(ClassOf(link.second));
        if (own.lanes_working(static_cast<int>(spec.lanes)) < own.lanes_min)
          short_of_lanes.insert(link);
      }
      return short_of_lanes;
    }
    default:
      return {};
  }
}

// Together with the links that are down already.
Failures With(const std::set<Link>& links, Failures failures) {
  failures.links.insert(links.begin(), links.end());
  return failures;
}

std::vector<NodeId> CutOff(const Topology& topology, const Failures& failures) {
  std::vector<NodeId> hubs;
  for (NodeId hub = 0; hub < topology.hubs(); ++hub) {
    bool linked = false, plugged = false;
    for (PortId port = 0; port < kLinkPorts && !linked; ++port) {
      if (!topology.connected(hub, port)) continue;
      plugged = true;
      linked = failures.links.count(Lower(topology, {hub, port})) == 0;
    }
    if (plugged && !linked) hubs.push_back(hub);
  }
  return hubs;
}

std::vector<std::string> Trees(const FabricView& view,
                               const std::set<std::pair<NodeId, NodeId>>& pairs,
                               const std::vector<NodeId>& cut_off) {
  std::vector<std::string> names;
  for (const TreeStatus& tree : view.trees) {
    if (!tree.plan || tree.state == TreeState::kDeleted) continue;
    const auto& vertices = tree.plan->vertices;
    const bool touched = std::any_of(vertices.begin(), vertices.end(), [&](const TreeVertex& v) {
      if (std::find(cut_off.begin(), cut_off.end(), v.node) != cut_off.end()) return true;
      if (v.parent == kNoVertex) return false;
      const NodeId parent = vertices[v.parent].node;
      return pairs.count({v.node, parent}) > 0 || pairs.count({parent, v.node}) > 0;
    });
    if (touched) names.push_back(tree.name);
  }
  return names;
}

std::uint64_t WindowsTouched(const FaultSpec& spec, const FaultPreview& preview,
                             const P7ihParameters& parameters) {
  const auto per_hfi = static_cast<std::uint64_t>(parameters.windows_per_hfi);
  if (spec.kind == FaultKind::kWindowDown) return preview.targets.hubs.size();
  if (spec.kind == FaultKind::kHfiDown) return preview.targets.hubs.size() * per_hfi;
  return preview.cut_off.size() * kHfisPerHub * per_hfi;
}

}  // namespace

absl::StatusOr<FaultPreview> PreviewFault(const FaultSpec& spec, const FabricView& view) {
  const Topology& topology = view.topology;
  if (absl::Status status = CheckFault(spec, topology, view.parameters); !status.ok())
    return status;
  if (topology.hubs() > kPreviewHubsMax) {
    return absl::OutOfRangeError(
        fmt::format("the preview supports up to {1} hubs; this machine has {0}", topology.hubs(),
                    kPreviewHubsMax));
  }
  FaultPreview preview;
  preview.seed = FaultSeed(spec, view.scenario_seed);
  auto targets = SelectTargets(spec, topology, preview.seed);
  if (!targets.ok()) return targets.status();
  preview.targets = *std::move(targets);
  const Touched touched(spec, preview.targets, view);
  std::set<std::pair<NodeId, NodeId>> pairs;
  for (NodeId source = 0; source < topology.hubs(); ++source) {
    for (NodeId destination = 0; destination < topology.hubs(); ++destination) {
      const std::uint64_t routes = source == destination ? 0 : touched.Routes(source, destination);
      if (routes == 0) continue;
      pairs.insert({source, destination});
      preview.routes += routes;
    }
  }
  preview.pairs.assign(pairs.begin(), pairs.end());
  const std::set<Link> down = TakenDown(spec, touched.links(), view.parameters);
  const FaultCost cost = RowOf(spec.kind).cost;
  const bool silences = cost == FaultCost::kSilence;
  preview.loses_packets = !down.empty() || silences || cost == FaultCost::kEntry ||
                          (!view.parameters.link_replay && cost != FaultCost::kNothing);
  const Failures failures = With(down, view.failures);
  if (!down.empty()) preview.cut_off = CutOff(topology, failures);
  preview.windows = WindowsTouched(spec, preview, view.parameters);
  preview.trees = Trees(view, pairs, silences ? preview.targets.hubs : preview.cut_off);
  const auto report =
      CheckTables(topology, failures, Planner(topology).Plan(failures), view.parameters.vc_policy);
  if (!report.ok()) return report.status();
  preview.unreachable_pairs = report->unreachable_pairs;
  return preview;
}

}  // namespace percs
