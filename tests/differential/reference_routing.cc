// Which way a packet goes: docs/semantics.md B.2.
#include <algorithm>
#include <map>

#include "tests/differential/reference_network.h"

namespace percs::reference {

PortMask Network::Entry(const Hub& hub, PortId input, TableKind table, bool intra, int index) {
  const HubTables& tables = *tables_[hub.id];
  std::shared_ptr<const RouteTable> t;
  if (IsHfi(input) || input == kServicePort) {
    t = table == TableKind::kDirect    ? tables.source_direct
        : table == TableKind::kStriped ? tables.source_striped
                                       : tables.source_indirect;
  } else {
    t = table == TableKind::kIndirect ? tables.port_indirect[input] : tables.port_direct[input];
  }
  if (!t) return 0;
  const auto& entries = intra ? t->intra : t->inter;
  return static_cast<std::size_t>(index) < entries.size() ? entries[index] : 0;
}

// The lowest port of a set above the pointer, cyclically; a pointer moves only if there is a
// choice.
PortId Network::Choose(Hub& hub, PortId input, TableKind table, int supernode, PortMask mask,
                       bool move) {
  std::vector<int> ports;
  for (int port = 0; port < kPorts; ++port) {
    if (mask & PortBit(static_cast<PortId>(port))) ports.push_back(port);
  }
  if (ports.size() == 1) return static_cast<PortId>(ports[0]);
  const auto key = std::tuple<int, TableKind, int>(input, table, supernode);
  const auto known = hub.route_pointers.find(key);
  const int pointer = known == hub.route_pointers.end() ? -1 : known->second;
  auto next = std::upper_bound(ports.begin(), ports.end(), pointer);
  if (next == ports.end()) next = ports.begin();
  if (move) hub.route_pointers[key] = *next;
  return static_cast<PortId>(*next);
}

void Network::RoutePacket(Hub& hub, PortId input, int input_vc, QueuedPacket* queued, bool source) {
  Packet& packet = *queued->packet;
  const ScriptedPacket& script = packet.script;
  if (topology_.is_group(script.destination)) {  // looked up when it is replicated
    queued->output = kReplication;
    return;
  }
  if (source) ChooseMode(hub, input, packet);
  const bool undecided = !source && packet.mode == RouteMode::kAdaptive;
  if (undecided) packet.mode = RouteMode::kHwDirect;
  NodeId exit = script.destination;
  if (exit == hub.id) {
    queued->output = static_cast<PortId>(
        kHfiFirst + 4 * (script.destination_window / parameters_.windows_per_hfi) +
        script.destination_window % 4);
    return;
  }
  if (topology_.is_blade(exit)) {
    const LinkEnd socket = topology_.BladePeer(exit);
    if (socket.node == hub.id) {
      queued->output = socket.port;  // VC 0, whatever the position
      if (!source && !LinkUp(hub.id, queued->output)) queued->drop = DropReason::kLinkDown;
      return;
    }
    exit = topology_.ExitHub(exit);
  }
  // From a blade a packet goes on as if injected here, and the blade sends as its hub would.
  const NodeId entry_hub = topology_.ExitHub(hub.id);
  if (exit == kNoNode || entry_hub == kNoNode) {
    queued->drop = DropReason::kNoRoute;
    ++result_.coverage.no_route;
    return;
  }
  const int here = topology_.supernode_of(entry_hub);
  const int destination = topology_.supernode_of(exit);
  const PortId better =
      undecided && IsL(input) && here != destination ? BetterD(hub, input, destination) : kNoPort;
  if (better != kNoPort) {
    packet.mode = RouteMode::kHwIndirect;
    packet.middle = topology_.supernode_of(topology_.Peer(hub.id, better).node);
    ++Stats(hub.id).packets_diverted;
    ++result_.coverage.diverted;
  }
  const bool indirect =
      packet.mode == RouteMode::kSwIndirect || packet.mode == RouteMode::kHwIndirect;
  TableKind table = indirect ? TableKind::kIndirect : TableKind::kDirect;
  if (source && packet.mode == RouteMode::kHwDirectStriped) table = TableKind::kStriped;
  const bool intra = destination == here;
  int supernode = destination;
  if (indirect && !intra && here != packet.middle) supernode = packet.middle;
  const PortMask mask =
      Entry(hub, input, table, intra, intra ? topology_.hub_in_supernode(exit) : supernode);
  // A diverted packet takes o', whatever the table of this port.
  if (mask == 0 && better == kNoPort) {
    queued->drop = DropReason::kNoRoute;
    ++result_.coverage.no_route;
    return;
  }
  queued->output =
      better != kNoPort ? better : Choose(hub, input, table, supernode, mask, /*move=*/true);
  if (better == kNoPort && (mask & (mask - 1)) != 0) {
    ++result_.coverage.route_choices;
    if (table == TableKind::kStriped) ++result_.coverage.striped_choices;
  }
  if (indirect && here == packet.middle && IsD(input) && IsL(queued->output)) {
    ++result_.coverage.middle_l_hops;
  }
  if (parameters_.vc_policy == VcPolicy::kPosition) {
    const bool fresh = source || topology_.is_blade(topology_.Peer(hub.id, input).node);
    const Position came_in_on = fresh ? kInjected : PositionOf(input, static_cast<VcId>(input_vc));
    if (graph_) {
      const auto& detours = tables_[hub.id]->detours;
      const bool detour = std::count(detours.begin(), detours.end(), exit) > 0;
      const auto vc = graph_->NextVc(hub.id, input, input_vc, queued->output, detour);
      result_.coverage.detours += detour;
      if (!vc) {
        queued->drop = DropReason::kNoVcPosition;
        ++result_.coverage.no_vc_position;
        return;
      }
      queued->output_vc = *vc;
      if (!source && !LinkUp(hub.id, queued->output)) queued->drop = DropReason::kLinkDown;
      return;
    }
    const Position next = NextPosition(came_in_on, queued->output);
    if (next == kNoPosition) {
      queued->drop = DropReason::kNoVcPosition;
      ++result_.coverage.no_vc_position;
      return;
    }
    queued->output_vc = VcOfPosition(next);
  }
  if (!source && !LinkUp(hub.id, queued->output)) queued->drop = DropReason::kLinkDown;
}

bool Network::IsOpen(const Hub& hub, int middle, int destination) {
  if (middle == destination || middle == topology_.supernode_of(hub.id)) return false;
  const auto& closed = tables_[hub.id]->closed_middles;
  const bool open =
      Entry(hub, kHfiFirst, TableKind::kIndirect, false, middle) != 0 &&
      std::count(closed.begin(), closed.end(), HubTables::ClosedMiddle(destination, middle)) == 0;
  if (!open) ++result_.coverage.middles_closed;
  return open;
}

int Network::OpenFrom(const Hub& hub, int first, int destination) {
  for (int i = 0; i < topology_.supernodes(); ++i) {
    const int middle = (first + i) % topology_.supernodes();
    if (IsOpen(hub, middle, destination)) return middle;
  }
  return -1;
}

int Network::OtherSupernode(const Hub& hub, int number, int destination) {
  std::vector<int> others;
  for (int s = 0; s < topology_.supernodes(); ++s) {
    if (s != destination && s != topology_.supernode_of(hub.id)) others.push_back(s);
  }
  return others[static_cast<std::size_t>(number)];
}

// The middle supernode that an indirect packet would take; -1 if none is open.
int Network::IndirectCandidate(Hub& hub, PortId hfi_port, const Packet& packet,
                               const RouteSetting& setting) {
  const NodeId exit = topology_.ExitHub(packet.script.destination);
  const int destination = topology_.supernode_of(exit);
  const int others = topology_.supernodes() - 2;
  if (setting.mode == RouteMode::kSwIndirect) {
    if (setting.middle != kNoMiddle) {
      return IsOpen(hub, setting.middle, destination) ? setting.middle : -1;
    }
    const int number = topology_.hub_in_supernode(hub.id) + topology_.hub_in_supernode(exit);
    return OpenFrom(hub, OtherSupernode(hub, number % others, destination), destination);
  }
  if (setting.selection == MiddleSelection::kRandom) {
    const auto number = static_cast<int>(hub.routing.Below(static_cast<std::uint32_t>(others)));
    return OpenFrom(hub, OtherSupernode(hub, number, destination), destination);
  }
  const auto pointer = hub.middle_pointers.find({hfi_port, destination});
  const int above = pointer == hub.middle_pointers.end() ? 0 : pointer->second + 1;
  return OpenFrom(hub, above, destination);
}

bool Network::AdaptiveTakesIndirect(Hub& hub, PortId hfi_port, int destination, int middle,
                                    const RouteSetting& setting) {
  const PortMask direct = Entry(hub, hfi_port, TableKind::kDirect, false, destination);
  if (direct == 0) return true;
  const PortMask indirect = Entry(hub, hfi_port, TableKind::kIndirect, false, middle);
  const PortId one = Choose(hub, hfi_port, TableKind::kDirect, destination, direct, false);
  const PortId other = Choose(hub, hfi_port, TableKind::kIndirect, middle, indirect, false);
  const DState behind_one = StateBehind(hub, one, destination);
  const DState behind_other = StateBehind(hub, other, middle);
  if ((setting.adaptive == AdaptiveAlgorithm::kPb ||
       setting.adaptive == AdaptiveAlgorithm::kInTransit) &&
      (behind_one.congested || behind_other.congested)) {
    ++(behind_other.congested ? result_.coverage.pb_direct : result_.coverage.pb_indirect);
    return !behind_other.congested;
  }
  const auto waiting = [&](PortId output, std::uint64_t behind) {
    std::uint64_t flits = setting.adaptive == AdaptiveAlgorithm::kUgalG ? behind : 0;
    for (HfiPort& port : hub.hfi) {
      for (const auto& queued : port.send[output]) flits += queued->packet->flits;
    }
    return flits;
  };
  return 3 * waiting(one, behind_one.flits) >
         5 * waiting(other, behind_other.flits) +
             static_cast<std::uint64_t>(setting.adaptive_threshold);
}

// Of a packet that goes directly and whose source left that open: the own D port that it takes over
// another supernode instead; kNoPort: none.
PortId Network::BetterD(Hub& hub, PortId input, int destination) {
  const PortMask mask = Entry(hub, input, TableKind::kDirect, false, destination);
  if (mask == 0) return kNoPort;
  const PortId direct = Choose(hub, input, TableKind::kDirect, destination, mask, /*move=*/false);
  if (!IsD(direct)) return kNoPort;
  const bool dead = !LinkUp(hub.id, direct);
  const std::uint64_t here = WaitingFor(hub, direct);
  if (!dead && here < static_cast<std::uint64_t>(parameters_.congestion_threshold)) return kNoPort;
  std::map<std::uint64_t, PortId> by_flits;  // the lowest port of each number
  for (PortId d = kDFirst; d < kHfiFirst; ++d) {
    if (!topology_.connected(hub.id, d) || !LinkUp(hub.id, d)) continue;
    const int middle = topology_.supernode_of(topology_.Peer(hub.id, d).node);
    const PortMask way = Entry(hub, kHfiFirst, TableKind::kIndirect, false, middle);
    if ((way & PortBit(d)) != 0 && IsOpen(hub, middle, destination))
      by_flits.emplace(WaitingFor(hub, d), d);
  }
  if (by_flits.empty()) return kNoPort;
  const auto [least, port] = *by_flits.begin();
  return dead || here > 2 * least ? port : kNoPort;
}

void Network::ChooseMode(Hub& hub, PortId hfi_port, Packet& packet) {
  const RouteSetting setting =
      packet.script.route ? *packet.script.route : routing_.of(routing_.workload);
  const NodeId exit = topology_.ExitHub(packet.script.destination);
  if (exit == kNoNode || topology_.is_blade(hub.id)) return;
  const int destination = topology_.supernode_of(exit);
  if (destination == topology_.supernode_of(hub.id)) return;
  Coverage& coverage = result_.coverage;
  if (setting.mode == RouteMode::kHwDirectStriped) {
    packet.mode = setting.mode;
    ++coverage.striped;
  } else if (setting.mode != RouteMode::kHwDirect && topology_.supernodes() > 2) {
    const int middle = IndirectCandidate(hub, hfi_port, packet, setting);
    const bool adaptive = setting.mode == RouteMode::kAdaptive;
    const bool taken =
        middle >= 0 &&
        (!adaptive || AdaptiveTakesIndirect(hub, hfi_port, destination, middle, setting));
    if (adaptive) ++(taken ? coverage.adaptive_indirect : coverage.adaptive_direct);
    if (middle < 0) ++coverage.indirect_went_direct;
    const bool open = adaptive && setting.adaptive == AdaptiveAlgorithm::kInTransit;
    if (!taken && open) packet.mode = RouteMode::kAdaptive;  // its next hub looks at it again
    if (!taken) return;
    packet.middle = middle;
    packet.mode = adaptive ? RouteMode::kHwIndirect : setting.mode;
    if (packet.mode == RouteMode::kSwIndirect) {
      ++coverage.sw_indirect;
    } else if (setting.selection == MiddleSelection::kRandom) {
      ++coverage.indirect_random;
    } else {
      hub.middle_pointers[{hfi_port, destination}] = middle;
      ++coverage.indirect_round_robin;
    }
  }
  if (packet.mode != RouteMode::kHwDirect) {
    ++Stats(hub.id).packets_by_mode[static_cast<int>(packet.mode)];
  }
}

}  // namespace percs::reference
