// What the source decides for a packet that is not simply direct: its mode and its middle
// supernode; and what the next hub decides if the source leaves it open (docs/semantics.md B.2).
#include <bit>

#include "emulator/isr/congestion.h"
#include "emulator/isr/router.h"
#include "fmt/format.h"

namespace percs {
namespace {

// Hops that each kind of route takes at most: what the adaptive choice weighs queues with.
constexpr std::uint64_t kDirectHops = 3, kIndirectHops = 5;

}  // namespace

PortId Router::RouteByMode(PacketHeader& header, PortId in, const RouteSetting& setting,
                           const QueuedFlits& queued) {
  const Topology& topology = *context_.topology;
  if (topology.is_group(header.destination)) return Route(header, in);
  const NodeId hub = topology.ExitHub(header.destination);
  if (hub == kNoNode || topology.is_blade(context_.node)) return Route(header, in);
  const int destination = topology.supernode_of(hub);
  if (destination == own_supernode()) return Route(header, in);
  if (setting.mode == RouteMode::kHwDirectStriped) {
    header.mode = setting.mode;
  } else if (topology.supernodes() > 2) {
    const bool named = setting.mode == RouteMode::kSwIndirect;
    const int middle =
        named ? NamedMiddle(hub, setting) : PickedMiddle(in, destination, setting.selection);
    if (middle >= 0 && (setting.mode != RouteMode::kAdaptive ||
                        IndirectIsBetter(destination, in, middle, setting, queued))) {
      header.mode = named ? RouteMode::kSwIndirect : RouteMode::kHwIndirect;
      header.middle = static_cast<std::uint16_t>(middle);
      if (!named && setting.selection == MiddleSelection::kRoundRobin) {
        middle_choice_->pointers[in - kHfiFirst][static_cast<std::size_t>(destination)] =
            static_cast<std::uint16_t>(middle + 1);
      }
    }
  }
  context_.CountMode(header.mode);
  if (setting.mode == RouteMode::kAdaptive && setting.adaptive == AdaptiveAlgorithm::kInTransit &&
      header.mode == RouteMode::kHwDirect) {
    header.mode = RouteMode::kAdaptive;
  }
  return Route(header, in);
}

PortId Router::RouteInTransit(PacketHeader& header, PortId in, PortMask up,
                              absl::FunctionRef<QueuedForD()> count) {
  header.mode = RouteMode::kHwDirect;
  const Topology& topology = *context_.topology;
  const NodeId hub = topology.ExitHub(header.destination);
  if (hub == kNoNode || !IsL(in) || topology.supernodes() < 3) return Route(header, in);
  const int destination = topology.supernode_of(hub);
  if (destination == own_supernode()) return Route(header, in);
  const TablePlace place = DirectPlace(hub, in);
  const PortMask mask = Entry(*tables_, place);
  if (mask == 0) return Route(header, in);
  const PortId direct = Candidate(mask, (mask & (mask - 1)) != 0 ? Pointer(place) : 0);
  if (!IsD(direct)) return Route(header, in);
  const QueuedForD waiting = count();
  const auto flits = [&](PortId d_port) {
    return waiting[static_cast<std::size_t>(d_port - kDFirst)];
  };
  const bool dead = (up & PortBit(direct)) == 0;
  if (!dead &&
      flits(direct) < static_cast<std::uint32_t>(context_.parameters->congestion_threshold)) {
    return Route(header, in);
  }
  PortId best = kNoPort;
  for (PortMask ports = up; ports != 0; ports &= ports - 1) {
    const auto port = static_cast<PortId>(std::countr_zero(ports));
    const int middle = topology.supernode_of(topology.Peer(context_.node, port).node);
    const TablePlace way{TableKind::kIndirect, kHfiFirst, false,
                         static_cast<std::uint16_t>(middle)};
    if (!Open(middle, destination) || (Entry(*tables_, way) & PortBit(port)) == 0) continue;
    if (best == kNoPort || flits(port) < flits(best)) best = port;
  }
  if (best == kNoPort || (!dead && flits(direct) <= 2 * flits(best))) return Route(header, in);
  header.mode = RouteMode::kHwIndirect;
  header.middle =
      static_cast<std::uint16_t>(topology.supernode_of(topology.Peer(context_.node, best).node));
  ++context_.stats.packets_diverted;
  return best;
}

bool Router::Open(int middle, int destination) const {
  return middle != destination && middle != own_supernode() && tables_->source_indirect &&
         !tables_->Closed(destination, middle) &&
         tables_->source_indirect->Entry({.index = static_cast<std::uint16_t>(middle)}) != 0;
}

// The first open middle from `from` on, cyclically; -1 if there is none.
int Router::FirstOpen(int from, int destination) const {
  const int supernodes = context_.topology->supernodes();
  for (int i = 0; i < supernodes; ++i) {
    const int middle = from + i < supernodes ? from + i : from + i - supernodes;
    if (Open(middle, destination)) return middle;
  }
  return -1;
}

// The n-th supernode that is neither the own nor the destination's.
int Router::NthOther(std::uint32_t n, int destination) const {
  const int own = own_supernode();
  int other = static_cast<int>(n);
  if (other >= std::min(own, destination)) ++other;
  if (other >= std::max(own, destination)) ++other;
  return other;
}

int Router::NamedMiddle(NodeId hub, const RouteSetting& setting) const {
  const Topology& topology = *context_.topology;
  const int destination = topology.supernode_of(hub);
  if (setting.middle != kNoMiddle) return Open(setting.middle, destination) ? setting.middle : -1;
  const int pair = topology.hub_in_supernode(context_.node) + topology.hub_in_supernode(hub);
  const int others = topology.supernodes() - 2;
  return FirstOpen(NthOther(static_cast<std::uint32_t>(pair % others), destination), destination);
}

int Router::PickedMiddle(PortId in, int destination, MiddleSelection selection) {
  const Topology& topology = *context_.topology;
  MiddleChoice& choice = middle_choice();
  if (selection == MiddleSelection::kRandom) {
    const std::uint32_t others = static_cast<std::uint32_t>(topology.supernodes() - 2);
    return FirstOpen(NthOther(choice.random.Below(others), destination), destination);
  }
  std::vector<std::uint16_t>& pointers = choice.pointers[in - kHfiFirst];
  if (pointers.empty()) pointers.resize(static_cast<std::size_t>(topology.supernodes()));
  return FirstOpen(pointers[static_cast<std::size_t>(destination)] % topology.supernodes(),
                   destination);
}

bool Router::IndirectIsBetter(int destination, PortId in, int middle, const RouteSetting& setting,
                              const QueuedFlits& queued) {
  const auto port = [&](const TablePlace& place, PortMask mask) {
    const bool choice = (mask & (mask - 1)) != 0;
    return choice ? Candidate(mask, Pointer(place)) : static_cast<PortId>(std::countr_zero(mask));
  };
  const TablePlace direct{TableKind::kDirect, in, false, static_cast<std::uint16_t>(destination)};
  const PortMask direct_mask = Entry(*tables_, direct);
  if (direct_mask == 0) return true;
  const TablePlace indirect{TableKind::kIndirect, in, false, static_cast<std::uint16_t>(middle)};
  const PortId one = port(direct, direct_mask), other = port(indirect, Entry(*tables_, indirect));
  std::uint64_t direct_flits = queued[one], indirect_flits = queued[other];
  if (setting.adaptive != AdaptiveAlgorithm::kUgalL) {
    PERCS_CHECK(reports_);
    const auto behind_one = reports_->Behind(one, destination);
    const auto behind_other = reports_->Behind(other, middle);
    if (setting.adaptive != AdaptiveAlgorithm::kUgalG) {
      // Over two congested links it would load both, over the direct one only that.
      if (behind_other.congested) return false;
      if (behind_one.congested) return true;
    } else {
      direct_flits += behind_one.flits;
      indirect_flits += behind_other.flits;
    }
  }
  return direct_flits * kDirectHops >
         indirect_flits * kIndirectHops + static_cast<std::uint64_t>(setting.adaptive_threshold);
}

Router::MiddleChoice& Router::middle_choice() {
  if (!middle_choice_) {
    middle_choice_ = std::make_unique<MiddleChoice>(
        RandomStream(seed_, fmt::format("node/{}/routing", context_.node)));
  }
  return *middle_choice_;
}

}  // namespace percs
