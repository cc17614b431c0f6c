#include "emulator/routing/legal_reach.h"

#include <algorithm>
#include <array>
#include <bit>

namespace percs {

const std::vector<Position>& LegalReach::From(NodeId source) {
  if (source == source_) return positions_;
  source_ = source;
  positions_.assign(topology_.hubs(), kNoPosition);
  if (!live_.hub(source)) return positions_;
  std::array<std::vector<NodeId>, kL2 + 2> arrived;  // by position + 1
  positions_[source] = kInjected;
  arrived[0].push_back(source);
  for (Position position = kInjected; position <= kL2; ++position) {
    for (NodeId node : arrived[static_cast<std::size_t>(position + 1)]) {
      if (positions_[node] != position) continue;  // came here lower as well
      for (PortMask ports = live_.ports(node); ports; ports &= ports - 1) {
        const PortId port = static_cast<PortId>(std::countr_zero(ports));
        const Position next = NextPosition(position, port);
        if (next == kNoPosition) continue;
        const NodeId peer = topology_.Peer(node, port).node;
        if (positions_[peer] <= next) continue;
        positions_[peer] = next;
        arrived[static_cast<std::size_t>(next + 1)].push_back(peer);
      }
    }
  }
  return positions_;
}

std::string LegalReach::AnyPath(NodeId source, NodeId destination) const {
  std::vector<NodeId> before(topology_.hubs(), kNoNode), queue{destination};
  before[destination] = destination;
  for (std::size_t i = 0; i < queue.size() && before[source] == kNoNode; ++i) {
    for (PortMask ports = live_.ports(queue[i]); ports; ports &= ports - 1) {
      const NodeId peer =
          topology_.Peer(queue[i], static_cast<PortId>(std::countr_zero(ports))).node;
      if (before[peer] != kNoNode) continue;
      before[peer] = queue[i];
      queue.push_back(peer);
    }
  }
  if (before[source] == kNoNode) return "";
  std::string names = topology_.NodeName(source);
  for (NodeId node = source; node != destination; node = before[node])
    names += " > " + topology_.NodeName(before[node]);
  return names;
}

}  // namespace percs
