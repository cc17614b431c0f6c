#include "emulator/topology/switch_graph.h"

#include <algorithm>
#include <bit>
#include <deque>
#include <numeric>

#include "absl/status/status.h"
#include "emulator/base/check.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace percs {
namespace {

absl::Status Misfit(const std::string& message) { return absl::InvalidArgumentError(message); }

absl::Status TooMany(std::int64_t switches) {
  return Misfit(fmt::format("topology: {} switches; write sizes that give at most {}", switches,
                            SwitchGraph::kSwitchesMax));
}

absl::Status TooManyPorts(const std::string& arithmetic, int ports) {
  return Misfit(fmt::format("topology: {} = {} links per switch, but a switch has {} link ports",
                            arithmetic, ports, SwitchGraph::kPortsMax));
}

}  // namespace

absl::StatusOr<SwitchGraph> SwitchGraph::Create(const GraphSpec& spec) {
  SwitchGraph graph(spec);
  absl::Status made;
  switch (spec.kind) {
    case GraphSpec::Kind::kTorus:
    case GraphSpec::Kind::kHyperx:
      made = graph.MakeGrid();
      break;
    case GraphSpec::Kind::kFatTree:
      made = graph.MakeFatTree();
      break;
    case GraphSpec::Kind::kListed:
      made = graph.MakeListed();
      break;
  }
  if (!made.ok()) return made;
  const auto links = [&](NodeId node) {
    return std::count_if(graph.links_[node].begin(), graph.links_[node].end(),
                         [](const Link& link) { return link.far.node != kNoNode; });
  };
  // The last switch of a fat tree, which is of its top level, else the last of those with most
  // links: one link of a root can be all that its neighbour has of ways up, and links of the first
  // switches are what people cut.
  NodeId root = graph.switches() - 1;
  for (NodeId node = root; spec.kind != GraphSpec::Kind::kFatTree && node-- > 0;) {
    if (links(node) > links(root)) root = node;
  }
  if (absl::Status ranked = graph.RankFrom(root); !ranked.ok()) return ranked;
  return graph;
}

void SwitchGraph::Join(NodeId a, PortId port_a, NodeId b, PortId port_b, Link there, Link back) {
  PERCS_CHECK(links_[a][port_a].far.node == kNoNode && links_[b][port_b].far.node == kNoNode);
  there.far = {b, port_b};
  back.far = {a, port_a};
  links_[a][port_a] = there;
  links_[b][port_b] = back;
}

// --- Torus and HyperX ----------------------------------------------------------------------------

absl::Status SwitchGraph::MakeGrid() {
  const bool torus = spec_.kind == GraphSpec::Kind::kTorus;
  if (spec_.dims.empty() || spec_.dims.size() > kDimsMax) {
    return Misfit(fmt::format("topology.dims: {} dimensions; write 1 to {}, like 4x4",
                              spec_.dims.size(), kDimsMax));
  }
  std::int64_t switches = 1;
  int ports = 0;
  std::vector<std::string> terms;
  for (const int size : spec_.dims) {
    if (size < 2 || size > kSwitchesMax) {
      return Misfit(fmt::format("topology.dims: {} is outside 2..{}", size, kSwitchesMax));
    }
    strides_.push_back(static_cast<int>(switches));
    first_port_.push_back(static_cast<PortId>(std::min<int>(ports, kPortsMax)));
    switches *= size;
    if (switches > kSwitchesMax) return TooMany(switches);
    const int links = torus && size > 2 ? 2 : torus ? 1 : size - 1;
    terms.push_back(std::to_string(links));
    ports += links;
  }
  if (ports > kPortsMax) return TooManyPorts(fmt::format("{}", fmt::join(terms, " + ")), ports);
  links_.resize(static_cast<std::size_t>(switches));
  leaves_ = static_cast<NodeId>(switches);
  for (NodeId node = 0; node < leaves_; ++node) {
    std::string name = "s";
    for (std::size_t dim = 0; dim < spec_.dims.size(); ++dim) {
      const int size = spec_.dims[dim], here = Coordinate(node, dim), first = first_port_[dim];
      name += fmt::format("{}{}", dim == 0 ? "" : "-", here);
      const auto at = [&](int to) {
        return static_cast<NodeId>(static_cast<int>(node) + (to - here) * strides_[dim]);
      };
      const auto section = static_cast<std::uint8_t>(dim);
      if (torus && size > 2) {  // forward by the first port, back by the second
        const int next = (here + 1) % size;
        Join(node, static_cast<PortId>(first), at(next), static_cast<PortId>(first + 1),
             {{}, section, static_cast<std::uint16_t>(here)},
             {{}, section, static_cast<std::uint16_t>(size - 1 - next)});
        continue;
      }
      for (int to = here + 1; to < size; ++to) {  // port k: the others in order
        Join(node, static_cast<PortId>(first + to - 1), at(to), static_cast<PortId>(first + here),
             {{}, section, 0}, {{}, section, 0});
      }
    }
    names_.push_back(name);
  }
  return absl::OkStatus();
}

PortMask SwitchGraph::PlannedInGrid(NodeId here, NodeId to) const {
  for (std::size_t dim = 0; dim < spec_.dims.size(); ++dim) {
    const int size = spec_.dims[dim], a = Coordinate(here, dim), b = Coordinate(to, dim);
    if (a == b) continue;
    const int first = first_port_[dim];
    if (spec_.kind != GraphSpec::Kind::kTorus || size == 2)
      return PortBit(static_cast<PortId>(first + (b < a ? b : b - 1)));
    const int forward = (b - a + size) % size;
    // Half way round both directions are as long; every other switch takes the other one.
    const bool back = 2 * forward == size ? a % 2 == 1 : 2 * forward > size;
    return PortBit(static_cast<PortId>(first + (back ? 1 : 0)));
  }
  return 0;
}

// --- Fat tree ------------------------------------------------------------------------------------
//
// An extended generalised fat tree (Oehring et al., IPPS 1995): a switch of level l has a digit for
// each of the positions 2 to `levels`. Those above l say which part of the tree it is in, the
// others which of the switches that are there for the same part. A switch and one of the level
// above are joined if they differ at most at that level's position.

int SwitchGraph::Values(int level, int position) const {
  const int down = spec_.radix / 2;
  return position > level || position > 2 ? down : down / spec_.taper;
}

NodeId SwitchGraph::SwitchAt(int level, const std::vector<int>& digits) const {
  int index = 0;
  for (int position = spec_.levels; position >= 2; --position)
    index = index * Values(level, position) + digits[static_cast<std::size_t>(position)];
  return level_first_[static_cast<std::size_t>(level)] + static_cast<NodeId>(index);
}

int SwitchGraph::LevelOf(NodeId node) const {
  int level = 1;
  while (node >= level_first_[static_cast<std::size_t>(level + 1)]) ++level;
  return level;
}

int SwitchGraph::Digit(NodeId node, int level, int position) const {
  int index = static_cast<int>(node - level_first_[static_cast<std::size_t>(level)]);
  for (int below = 2; below < position; ++below) index /= Values(level, below);
  return index % Values(level, position);
}

absl::Status SwitchGraph::MakeFatTree() {
  const int down = spec_.radix / 2, up = down / std::max(1, spec_.taper);
  if (spec_.levels < 2 || spec_.levels > kLevelsMax)
    return Misfit(fmt::format("topology.levels: {} is outside 2..{}", spec_.levels, kLevelsMax));
  if (spec_.radix < 2 || spec_.radix % 2 != 0)
    return Misfit(
        fmt::format("topology.radix: {} is no even number from 2 on; half of the ports "
                    "of a switch lead down",
                    spec_.radix));
  if (spec_.taper < 1 || down % spec_.taper != 0) {
    return Misfit(
        fmt::format("topology.taper: {} does not divide the {} / 2 = {} ports of a leaf "
                    "that lead up",
                    spec_.taper, spec_.radix, down));
  }
  if (spec_.radix > kPortsMax) return TooManyPorts(fmt::format("{} + {}", down, down), spec_.radix);
  std::int64_t all = 0;
  level_first_ = {0};
  for (int level = 1; level <= spec_.levels; ++level) {
    level_first_.push_back(static_cast<NodeId>(all));
    std::int64_t switches = 1;
    for (int position = 2; position <= spec_.levels; ++position)
      switches *= Values(level, position);
    all += switches;
    if (all > kSwitchesMax) return TooMany(all);
  }
  level_first_.push_back(static_cast<NodeId>(all));
  leaves_ = level_first_[2];
  links_.resize(static_cast<std::size_t>(all));
  for (NodeId node = 0; node < all; ++node) {
    const int level = LevelOf(node);
    names_.push_back(
        fmt::format("l{}-s{}", level, node - level_first_[static_cast<std::size_t>(level)]));
    if (level == spec_.levels) continue;
    std::vector<int> digits(static_cast<std::size_t>(spec_.levels) + 1);
    for (int position = 2; position <= spec_.levels; ++position)
      digits[static_cast<std::size_t>(position)] = Digit(node, level, position);
    const int own = digits[static_cast<std::size_t>(level + 1)];
    for (int parent = 0; parent < (level == 1 ? up : down); ++parent) {
      digits[static_cast<std::size_t>(level + 1)] = parent;
      Join(node, static_cast<PortId>(down + parent), SwitchAt(level + 1, digits),
           static_cast<PortId>(own), {{}, 0, static_cast<std::uint16_t>(level)},
           {{}, 1, static_cast<std::uint16_t>(spec_.levels - level)});
    }
  }
  return absl::OkStatus();
}

PortMask SwitchGraph::PlannedInTree(NodeId here, NodeId to) const {
  if (to >= leaves_) return 0;
  const int level = LevelOf(here);
  for (int position = level + 1; position <= spec_.levels; ++position) {
    if (Digit(here, level, position) == Digit(to, 1, position)) continue;
    const int down = spec_.radix / 2, up = level == 1 ? down / spec_.taper : down;
    return ((PortMask{1} << up) - 1) << down;
  }
  return PortBit(static_cast<PortId>(Digit(to, 1, level)));
}

// --- Listed --------------------------------------------------------------------------------------

absl::Status SwitchGraph::MakeListed() {
  const std::size_t switches = spec_.names.size();
  if (switches > kSwitchesMax) return TooMany(static_cast<std::int64_t>(switches));
  if (switches < 2) {
    return Misfit(fmt::format("topology: {} switches; a network needs at least 2", switches));
  }
  links_.resize(switches);
  names_ = spec_.names;
  leaves_ = static_cast<NodeId>(switches);
  std::vector<PortMask> taken(switches);  // first those that links name
  for (const SwitchLink& link : spec_.links) {
    PERCS_CHECK(link.a < switches && link.b < switches);
    if (link.a == link.b)
      return Misfit(fmt::format("topology: a link joins {} to itself", names_[link.a]));
    for (const auto& [node, port] : {std::pair(link.a, link.port_a), {link.b, link.port_b}}) {
      if (port == kNoPort) continue;
      if (taken[node] & PortBit(port)) {
        return Misfit(fmt::format("topology: {}:{} has two links", names_[node], PortName(port)));
      }
      taken[node] |= PortBit(port);
    }
  }
  for (const SwitchLink& link : spec_.links) {
    const bool local = link.link_class == LinkClass::kLl;
    const int first = local ? kLlFirst : kLrFirst, ports = local ? kLlPorts : kLrPorts;
    const PortMask all = ((PortMask{1} << ports) - 1) << first;
    const auto port_of = [&](NodeId node, PortId port) -> PortId {
      const PortMask free = all & ~taken[node];
      if (port != kNoPort || free == 0) return port;
      taken[node] |= free & -free;
      return static_cast<PortId>(std::countr_zero(free));
    };
    const PortId a = port_of(link.a, link.port_a), b = port_of(link.b, link.port_b);
    if (a == kNoPort || b == kNoPort) {
      return Misfit(fmt::format("topology: {} has more than {} links of class {}",
                                names_[a == kNoPort ? link.a : link.b], ports,
                                local ? "ll" : "lr"));
    }
    Join(link.a, a, link.b, b, {}, {});
  }
  return absl::OkStatus();
}

// --- Order ---------------------------------------------------------------------------------------

absl::Status SwitchGraph::RankFrom(NodeId root) {
  std::vector<std::uint32_t> distance(switches(), kNoNode);
  std::deque<NodeId> reached{root};
  distance[root] = 0;
  for (; !reached.empty(); reached.pop_front()) {
    const NodeId node = reached.front();
    for (const Link& link : links_[node]) {
      if (link.far.node == kNoNode || distance[link.far.node] != kNoNode) continue;
      distance[link.far.node] = distance[node] + 1;
      reached.push_back(link.far.node);
    }
  }
  if (const auto cut = std::find(distance.begin(), distance.end(), kNoNode);
      cut != distance.end()) {
    return Misfit(fmt::format("topology: no links join {} to {}",
                              names_[static_cast<std::size_t>(cut - distance.begin())],
                              names_[root]));
  }
  const auto last = std::max_element(distance.begin(), distance.end());
  if (*last > kDistanceMax) {
    return Misfit(fmt::format(
        "topology: {} links from {} to {}; write sizes that give at most {}", *last, names_[root],
        names_[static_cast<std::size_t>(last - distance.begin())], kDistanceMax));
  }
  std::vector<NodeId> order(switches());
  std::iota(order.begin(), order.end(), NodeId{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](NodeId a, NodeId b) { return distance[a] < distance[b]; });
  rank_.resize(switches());
  for (std::uint32_t i = 0; i < order.size(); ++i) rank_[order[i]] = i;
  return absl::OkStatus();
}

PortMask SwitchGraph::Planned(NodeId here, NodeId to) const {
  if (here == to) return 0;
  switch (spec_.kind) {
    case GraphSpec::Kind::kTorus:
    case GraphSpec::Kind::kHyperx:
      return PlannedInGrid(here, to);
    case GraphSpec::Kind::kFatTree:
      return PlannedInTree(here, to);
    case GraphSpec::Kind::kListed:
      break;
  }
  return 0;
}

VcId SwitchGraph::NextVc(NodeId node, PortId in, VcId vc, PortId out, bool detour) const {
  const bool fresh = in >= kPortsMax;
  const Link& next = links_[node][out];
  if (detour || (!fresh && vc == kDetourVc)) {
    if (fresh || vc != kDetourVc) return kDetourVc;
    const NodeId before = links_[node][in].far.node;
    return Up(before, node) || !Up(node, next.far.node) ? kDetourVc : kNoVc;
  }
  if (fresh) return 0;
  const Far sender = links_[node][in].far;
  const Link& last = links_[sender.node][sender.port];
  if (next.section != last.section) return next.section > last.section ? VcId{0} : kNoVc;
  if (next.place > last.place) return vc;
  return vc + 1 < kDetourVc ? static_cast<VcId>(vc + 1) : kNoVc;
}

}  // namespace percs
