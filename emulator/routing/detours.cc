#include "emulator/routing/detours.h"

#include <algorithm>
#include <bit>

namespace percs {
namespace {

// A third supernode's links carry its own traffic; any way without them is preferred.
constexpr int kThirdSupernodeCost = 16;

template <typename Visit>
void ForEachPort(PortMask ports, Visit visit) {
  for (; ports; ports &= ports - 1) visit(static_cast<PortId>(std::countr_zero(ports)));
}

}  // namespace

PortMask Detours::Fixed(const Place& place) const {
  const auto found = entries_.find(Key({place.node, place.in_port, false, place.supernode, 0}));
  if (found != entries_.end()) return found->second;
  if (!IsL(place.in_port)) return 0;
  const auto supernode = static_cast<std::size_t>(place.supernode);
  const LinkEnd before = topology_.Peer(place.node, place.in_port);
  return toward_[before.node][supernode] & PortBit(before.port) ? own_d_[place.node][supernode] : 0;
}

HubMask Detours::LiveExits(int from, int to) const {
  HubMask exits = 0;
  for (HubMask rest = topology_.ExitHubs(from, to); rest; rest &= rest - 1) {
    const NodeId node = topology_.node(from, std::countr_zero(rest));
    if (topology_.DPorts(node, to) & live_.ports(node)) exits |= rest & -rest;
  }
  return exits;
}

PortMask Detours::Candidates(const Place& place) const {
  const int own = topology_.supernode_of(place.node);
  const PortMask live = live_.ports(place.node);
  constexpr PortMask kAllD = ((PortMask{1} << kDPorts) - 1) << kDFirst;
  PortMask ports =
      place.position < kD0 ? live & kAllD : topology_.DPorts(place.node, place.supernode) & live;
  HubMask hubs = 0;
  if (place.position < kL0) {
    hubs = live_.neighbors(place.node);
  } else if (place.position < kL1) {  // one L hop and D1 are left: straight to an exit hub
    hubs = live_.neighbors(place.node) & LiveExits(own, place.supernode);
  }
  ports |= live_.LPorts(topology_.hub_in_supernode(place.node), hubs);
  return place.in_port == kNoPort ? ports : ports & ~PortBit(place.in_port);
}

Detours::Place Detours::Next(const Place& place, PortId port, Position position) const {
  const LinkEnd peer = topology_.Peer(place.node, port);
  return {peer.node, peer.port, position, place.supernode, place.must};
}

Detours::Way Detours::After(const Place& place, PortId port) const {
  const Position position = NextPosition(place.position, port);
  if (position == kNoPosition || !live_.port(place.node, port)) return {};
  const Place next = Next(place, port, position);
  if (IsD(port) && topology_.supernode_of(next.node) == place.supernode) {
    return {live_.Landing(next.node, position), 1, 0};
  }
  Way way = Best(next);
  way.cost += IsD(port) ? kThirdSupernodeCost : 1;
  return way;
}

void Detours::Offer(const Way& way, PortId port, const Place& place, Way* best) {
  const int count = std::popcount(way.reaches), most = std::popcount(best->reaches);
  if (count == 0 || (place.must & ~way.reaches)) return;
  if (count > most || (count == most && way.cost < best->cost)) {
    *best = {way.reaches, way.cost, PortBit(port)};
  } else if (way.reaches == best->reaches && way.cost == best->cost) {
    best->ports |= PortBit(port);
  }
}

Detours::Way Detours::Best(const Place& place) const {
  Way best;
  const PortMask fixed = place.in_port == kNoPort ? 0 : Fixed(place);
  ForEachPort(fixed ? fixed : Candidates(place),
              [&](PortId port) { Offer(After(place, port), port, place, &best); });
  return best;
}

void Detours::Commit(const Place& place, const Way& way) {
  if (place.in_port == kNoPort || way.ports != Fixed(place)) {
    Set({place.node, place.in_port, false, place.supernode, way.ports});
  }
  ForEachPort(way.ports, [&](PortId port) {
    const Place next = Next(place, port, NextPosition(place.position, port));
    if (topology_.supernode_of(next.node) != place.supernode) Commit(next, Best(next));
  });
}

int Detours::AddInter(NodeId source, int supernode) {
  const Place place{source, kNoPort, kInjected, supernode, 0};
  const Way way = Best(place);
  if (way.reaches) Commit(place, way);
  return std::popcount(way.reaches);
}

void Detours::AddIntra(NodeId source, int hub) {
  const int own = topology_.supernode_of(source);
  constexpr PortMask kAllD = ((PortMask{1} << kDPorts) - 1) << kDFirst;
  const auto leave = [&](const Place& place) {
    Way best;
    ForEachPort(live_.ports(place.node) & kAllD,
                [&](PortId port) { Offer(After(place, port), port, place, &best); });
    return best;
  };
  const auto commit = [&](const Place& place, const Way& way) {
    Set({place.node, place.in_port, true, hub, way.ports});
    ForEachPort(way.ports, [&](PortId port) {
      const Place third = Next(place, port, NextPosition(place.position, port));
      Commit(third, Best(third));
    });
  };
  const Place start{source, kNoPort, kInjected, own, HubBit(hub)};
  if (const Way way = leave(start); way.reaches) return commit(start, way);
  Way best;
  ForEachPort(live_.LPorts(topology_.hub_in_supernode(source), live_.neighbors(source)),
              [&](PortId port) { Offer(leave(Next(start, port, kL0)), port, start, &best); });
  if (!best.reaches) return;
  Set({source, kNoPort, true, hub, best.ports});
  ForEachPort(best.ports, [&](PortId port) {
    const Place next = Next(start, port, kL0);
    commit(next, leave(next));
  });
}

std::vector<TableEntry> Detours::Entries() const {
  std::vector<TableEntry> all;
  all.reserve(entries_.size());
  for (const auto& [key, ports] : entries_) {
    all.push_back({static_cast<NodeId>(key >> 32), static_cast<PortId>(key >> 16 & 0xff),
                   (key >> 15 & 1) != 0, static_cast<int>(key & 0x7fff), ports});
  }
  std::sort(all.begin(), all.end(),
            [](const TableEntry& a, const TableEntry& b) { return Key(a) < Key(b); });
  return all;
}

}  // namespace percs
