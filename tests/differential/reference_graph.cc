#include "tests/differential/reference_graph.h"

#include <algorithm>

namespace percs::reference {
namespace {

std::vector<NodeId> Neighbours(const Topology& topology, NodeId node) {
  std::vector<NodeId> found;
  for (PortId port = 0; port < kLinkPorts; ++port) {
    if (topology.connected(node, port)) found.push_back(topology.Peer(node, port).node);
  }
  return found;
}

}  // namespace

GraphRule::GraphRule(const Topology& topology)
    : topology_(topology), distance_(topology.hubs(), -1) {
  NodeId root = 0;
  for (NodeId node = 0; node < topology.hubs(); ++node) {
    if (Neighbours(topology, node).size() >= Neighbours(topology, root).size()) root = node;
  }
  if (topology.spec().graph->kind == GraphSpec::Kind::kFatTree) root = topology.hubs() - 1;
  distance_[root] = 0;
  for (int d = 0; std::count(distance_.begin(), distance_.end(), -1) > 0; ++d) {
    for (NodeId node = 0; node < topology.hubs(); ++node) {
      if (distance_[node] != d) continue;
      for (const NodeId next : Neighbours(topology, node)) {
        if (distance_[next] < 0) distance_[next] = d + 1;
      }
    }
  }
}

bool GraphRule::Up(NodeId from, NodeId to) const {
  return std::pair(distance_[to], to) < std::pair(distance_[from], from);
}

int GraphRule::Level(NodeId node) const { return topology_.NodeName(node)[1] - '0'; }

GraphRule::Order GraphRule::Of(NodeId from, NodeId to) const {
  const GraphSpec& graph = *topology_.spec().graph;
  if (graph.kind == GraphSpec::Kind::kFatTree) {
    return Level(to) > Level(from) ? Order{0, Level(from)} : Order{1, -Level(from)};
  }
  if (graph.kind == GraphSpec::Kind::kListed) return {0, 0};
  int a = static_cast<int>(from), b = static_cast<int>(to), section = 0;
  while (a % graph.dims[static_cast<std::size_t>(section)] ==
         b % graph.dims[static_cast<std::size_t>(section)]) {
    a /= graph.dims[static_cast<std::size_t>(section)];
    b /= graph.dims[static_cast<std::size_t>(section)];
    ++section;
  }
  const int size = graph.dims[static_cast<std::size_t>(section)];
  if (graph.kind == GraphSpec::Kind::kHyperx || size == 2) return {section, 0};
  const bool forward = b % size == (a % size + 1) % size;
  return {section, forward ? a % size : size - 1 - a % size};
}

std::optional<int> GraphRule::NextVc(NodeId node, PortId in, int vc, PortId out,
                                     bool detour) const {
  const NodeId next = topology_.Peer(node, out).node;
  if (in >= kLinkPorts) return detour ? 2 : 0;
  const NodeId before = topology_.Peer(node, in).node;
  if (vc == 2) {
    if (!Up(before, node) && Up(node, next)) return std::nullopt;
    return 2;
  }
  if (detour) return 2;
  const Order last = Of(before, node), here = Of(node, next);
  if (here.section < last.section) return std::nullopt;
  if (here.section > last.section) return 0;
  if (here.place > last.place) return vc;
  return vc == 0 ? std::optional<int>(1) : std::nullopt;
}

}  // namespace percs::reference
