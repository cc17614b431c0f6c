#include "emulator/routing/check_indirect.h"

#include <algorithm>
#include <bit>

#include "fmt/format.h"

namespace percs {

PortMask IndirectCheck::Choices(const Place& place, bool intra, int index) const {
  return tables_[place.node]
      ->Table(TableKind::kIndirect, place.in_port)
      ->Entry({TableKind::kIndirect, place.in_port, intra, static_cast<std::uint16_t>(index)});
}

IndirectCheck::Place IndirectCheck::Follow(const Place& place, PortId port) const {
  const Position next = port < kLinkPorts ? NextPosition(place.position, port) : kNoPosition;
  if (next == kNoPosition || !live_.port(place.node, port)) return {kNoNode, kNoPort, kNoPosition};
  const LinkEnd peer = topology_.Peer(place.node, port);
  return {peer.node, peer.port, next};
}

IndirectCheck::Place IndirectCheck::Walk(const Place& place, PortId port) {
  const Place next = Follow(place, port);
  if (next.node != kNoNode && place.in_port != kNoPort) {
    channels_.Add(place.node, place.in_port, place.position, port);
  }
  if (next.node != kNoNode) hops_max_ = std::max(hops_max_, static_cast<int>(next.position) + 1);
  return next;
}

// Supernodes that every walk from here over the middle one reaches. A walk that goes elsewhere
// first, or reaches the middle one too late to leave it, reaches none.
bool IndirectCheck::FirstLeg(const Place& place, int middle, Supernodes* reaches) {
  PortMask ports = Choices(place, false, middle);
  if (!ports) return false;
  for (; ports; ports &= ports - 1) {
    const Place next = Walk(place, static_cast<PortId>(std::countr_zero(ports)));
    if (next.node == kNoNode || next.position > kD0) return false;
    if (topology_.supernode_of(next.node) == middle) {
      *reaches &= SecondLeg(next);
    } else if (IsD(next.in_port) || !FirstLeg(next, middle, reaches)) {
      return false;
    }
  }
  return true;
}

const IndirectCheck::Supernodes& IndirectCheck::SecondLeg(const Place& place) {
  Second& second = seconds_[Index(place)];
  if (second.known) return second.reaches;
  second.known = true;
  const int middle = topology_.supernode_of(place.node);
  // Another D port of the hub that shares the table has walked already.
  for (int p = kDFirst; p < kHfiFirst; ++p) {
    const Place other{place.node, static_cast<PortId>(p), place.position};
    const HubTables& hub = *tables_[place.node];
    if (other.in_port == place.in_port || !seconds_[Index(other)].known ||
        hub.port_indirect[other.in_port] != hub.port_indirect[place.in_port]) {
      continue;
    }
    PortMask all = 0;
    const RouteTable& table = *hub.port_indirect[place.in_port];
    for (std::size_t d = 0; d < table.inter.size(); ++d) {
      if (alive_[d] && static_cast<int>(d) != middle) all |= table.inter[d];
    }
    for (; all; all &= all - 1) Walk(place, static_cast<PortId>(std::countr_zero(all)));
    second.reaches = seconds_[Index(other)].reaches;
    return second.reaches;
  }
  for (int d = 0; d < topology_.supernodes(); ++d) {
    if (d != middle && alive_[static_cast<std::size_t>(d)] && ReachesAll(place, d)) {
      second.reaches.set(static_cast<std::size_t>(d));
    }
  }
  return second.reaches;
}

bool IndirectCheck::ReachesAll(const Place& place, int destination) {
  PortMask ports = Choices(place, false, destination);
  bool good = ports != 0;
  for (; ports; ports &= ports - 1) {
    const Place next = Walk(place, static_cast<PortId>(std::countr_zero(ports)));
    if (next.node == kNoNode) {
      good = false;
    } else if (topology_.supernode_of(next.node) == destination) {
      good &= Landed(next) == live_.hubs(destination);
    } else {
      good &= !IsD(next.in_port) && ReachesAll(next, destination);
    }
  }
  return good;
}

// After D1 one L hop is left.
HubMask IndirectCheck::Landed(const Place& place) {
  Landing& landing = landings_[Index(place)];
  if (landing.known) return landing.reaches;
  landing.known = true;
  const int supernode = topology_.supernode_of(place.node);
  landing.reaches = HubBit(topology_.hub_in_supernode(place.node));
  for (HubMask rest = live_.hubs(supernode) & ~landing.reaches; rest; rest &= rest - 1) {
    const int hub = std::countr_zero(rest);
    PortMask ports = Choices(place, true, hub);
    bool good = ports != 0;
    for (; ports; ports &= ports - 1) {
      good &= Walk(place, static_cast<PortId>(std::countr_zero(ports))).node ==
              topology_.node(supernode, hub);
    }
    if (good) landing.reaches |= HubBit(hub);
  }
  return landing.reaches;
}

bool IndirectCheck::Explain(const Place& place, int middle, NodeId destination,
                            std::string* walk) const {
  const std::size_t length = walk->size();
  *walk += topology_.NodeName(place.node);
  if (place.node == destination) return walk->resize(length), true;
  const int here = topology_.supernode_of(place.node), last = topology_.supernode_of(destination);
  const bool intra = here == last;
  PortMask ports = Choices(place, intra,
                           intra            ? topology_.hub_in_supernode(destination)
                           : here == middle ? last
                                            : middle);
  if (!ports) return *walk += " has no route", false;
  for (; ports; ports &= ports - 1) {
    const PortId port = static_cast<PortId>(std::countr_zero(ports));
    const Place next = Follow(place, port);
    if (next.node == kNoNode) {
      const bool dead = port >= kLinkPorts || !live_.port(place.node, port);
      *walk += fmt::format(" would leave by {}, {}", topology_.LinkName({place.node, port}),
                           dead ? "which is not a live link" : "for which no VC position is left");
      return false;
    }
    const std::size_t here_length = walk->size();
    *walk += " > ";
    if (!Explain(next, middle, destination, walk)) return false;
    walk->resize(here_length);
  }
  walk->resize(length);
  return true;
}

absl::Status IndirectCheck::CheckSource(NodeId source) {
  const HubTables& hub = *tables_[source];
  const int own = topology_.supernode_of(source);
  const Place start{source, kNoPort, kInjected};
  for (int middle = 0; middle < topology_.supernodes(); ++middle) {
    if (middle == own || Choices(start, false, middle) == 0) continue;
    Supernodes required = alive_;
    required.reset(static_cast<std::size_t>(own)).reset(static_cast<std::size_t>(middle));
    for (const std::uint32_t closed : hub.closed_middles) {
      if (static_cast<int>(closed & 0xffff) == middle) required.reset(closed >> 16);
    }
    if (required.none()) continue;
    Supernodes reaches = ~Supernodes();
    if (!FirstLeg(start, middle, &reaches)) reaches.reset();
    const Supernodes missing = required & ~reaches;
    if (missing.none()) continue;
    int destination = 0;
    while (!missing[static_cast<std::size_t>(destination)]) ++destination;
    for (HubMask rest = live_.hubs(destination); rest; rest &= rest - 1) {
      const NodeId to = topology_.node(destination, std::countr_zero(rest));
      std::string walk;
      if (Explain(start, middle, to, &walk)) continue;
      return absl::FailedPreconditionError(
          fmt::format("route tables: {} to {} over supernode {}: {}", topology_.NodeName(source),
                      topology_.NodeName(to), middle, walk));
    }
    return absl::FailedPreconditionError(fmt::format(
        "route tables: {} to supernode {} over supernode {}: a walk passes a third supernode",
        topology_.NodeName(source), destination, middle));
  }
  return absl::OkStatus();
}

// A direct packet that came in on its first link may leave by any own D port over which the source
// here would reach a middle (docs/semantics.md B.2, `in_transit`): from there on its walk is one of
// those of the source.
void IndirectCheck::AddDiversions(NodeId hub) {
  PortMask d_ports = 0;
  for (const PortMask ports : tables_[hub]->source_indirect->inter) d_ports |= ports;
  d_ports &= live_.ports(hub) & (~PortMask{0} << kDFirst);
  for (PortId in = 0; d_ports != 0 && in < kDFirst; ++in) {
    if (!live_.port(hub, in)) continue;
    for (PortMask rest = d_ports; rest; rest &= rest - 1) {
      channels_.Add(hub, in, kL0, static_cast<PortId>(std::countr_zero(rest)));
    }
  }
}

absl::Status IndirectCheck::Run(int* hops_max) {
  if (topology_.supernodes() < 3) return absl::OkStatus();
  for (int s = 0; s < topology_.supernodes(); ++s) {
    if (live_.hubs(s)) alive_.set(static_cast<std::size_t>(s));
  }
  for (NodeId source = 0; source < topology_.hubs(); ++source) {
    if (!live_.hub(source)) continue;
    if (absl::Status status = CheckSource(source); !status.ok()) return status;
    AddDiversions(source);
  }
  *hops_max = std::max(*hops_max, hops_max_);
  return absl::OkStatus();
}

}  // namespace percs
