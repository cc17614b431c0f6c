#include "emulator/isr/router.h"

#include <algorithm>
#include <bit>

namespace percs {

void Router::Install(std::shared_ptr<const HubTables> tables, Epoch epoch) {
  previous_ = tables_ == tables ? nullptr : std::move(tables_);
  tables_ = std::move(tables);
  epoch_ = epoch;
  watching_ = previous_ || !damaged_.empty();
  std::vector<const RouteTable*> known;
  direct_tables_.clear();
  for (std::size_t port = 0; port < direct_table_of_.size(); ++port) {
    const RouteTable* const table =
        tables_->Table(TableKind::kDirect, static_cast<PortId>(port)).get();
    const auto at = std::find(known.begin(), known.end(), table);
    direct_table_of_[port] = static_cast<std::uint8_t>(at - known.begin());
    if (at != known.end()) continue;
    known.push_back(table);
    direct_tables_.push_back(table ? DirectTable{table->intra, table->inter} : DirectTable{});
  }
}

TablePlace Router::PlaceByMode(const PacketHeader& header, NodeId hub, PortId in) const {
  const Topology& topology = *context_.topology;
  const int here = own_supernode(), last = topology.supernode_of(hub);
  TablePlace place{TableKind::kDirect, in, here == last, static_cast<std::uint16_t>(last)};
  if (IsIndirect(header.mode)) {
    place.kind = TableKind::kIndirect;
    if (!place.intra && here != header.middle) place.index = header.middle;
  } else if (in >= kLinkPorts && header.mode == RouteMode::kHwDirectStriped) {
    place.kind = TableKind::kStriped;
  }
  if (place.intra) {
    place.index = static_cast<std::uint16_t>(topology.hub_in_supernode(hub));
  }
  return place;
}

PortId Router::Forward(NodeId destination) {
  const int endpoint = context_.topology->DestinationEndpoint(destination);
  if (endpoint < 0) return kNoPort;
  const auto entry = [endpoint](const HubTables& tables) {
    const auto i = static_cast<std::size_t>(endpoint);
    return i < tables.forwarding.size() ? tables.forwarding[i] : kNoPort;
  };
  const PortId port = entry(*tables_);
  if (previous_ && port != kNoPort && port != entry(*previous_)) {
    first_rerouted_.emplace_back(epoch_, context_.now);
    previous_ = nullptr;
    watching_ = !damaged_.empty();
  }
  return port;
}

PortId Router::RouteElsewhere(const PacketHeader& header, PortId in) {
  if (forwards_from_ == 0) return Forward(header.destination);
  return context_.topology->is_group(header.destination) ? kReplication : RouteToBlade(header, in);
}

PortMask Router::Branches(const PacketHeader& header, DropReason* reason) {
  const auto group = static_cast<std::uint16_t>(context_.topology->group_of(header.destination));
  const PortMask mask = tables_->Multicast(group);
  const bool damaged = watching_ && !Watch({TableKind::kMulticast, kNoPort, false, group}, mask);
  *reason = damaged ? DropReason::kTableParity : DropReason::kNoRoute;
  return damaged ? 0 : mask;
}

PortId Router::RouteToBlade(const PacketHeader& header, PortId in) {
  const LinkEnd socket = context_.topology->Socket(header.destination);
  if (socket.node == context_.node) return socket.port;
  return socket.node >= context_.topology->hubs() ? kNoPort : RouteToHub(header, socket.node, in);
}

PortId Router::RouteToHub(const PacketHeader& header, NodeId hub, PortId in) {
  const bool direct = header.mode == RouteMode::kHwDirect;
  const TablePlace place = direct ? DirectPlace(hub, in) : PlaceByMode(header, hub, in);
  const PortMask mask = direct ? Direct(place) : Entry(*tables_, place);
  if (watching_ && !Watch(place, mask)) return kDamagedEntry;
  if (mask == 0) return kNoPort;
  if ((mask & (mask - 1)) == 0) return static_cast<PortId>(std::countr_zero(mask));
  std::uint8_t& pointer = Pointer(place);
  const PortId port = Candidate(mask, pointer);
  pointer = static_cast<std::uint8_t>(port + 1);
  return port;
}

void Router::Damage(const TablePlace& place) {
  damaged_.push_back({place});
  watching_ = true;
}

void Router::Repair(const TablePlace& place) {
  const auto it = std::find_if(damaged_.begin(), damaged_.end(), [&](const DamagedEntry& entry) {
    return entry.place.kind == place.kind && entry.place.port == place.port &&
           entry.place.intra == place.intra && entry.place.index == place.index;
  });
  if (it != damaged_.end()) damaged_.erase(it);
  watching_ = previous_ || !damaged_.empty();
}

bool Router::Watch(const TablePlace& place, PortMask mask) {
  const auto table = [](const TablePlace& p) { return p.port < kLinkPorts ? p.port : kNoPort; };
  for (DamagedEntry& entry : damaged_) {
    if (entry.place.kind != place.kind || table(entry.place) != table(place) ||
        entry.place.intra != place.intra || entry.place.index != place.index) {
      continue;
    }
    if (!entry.reported) on_damage_();
    entry.reported = true;
    return false;
  }
  const auto before = [&] {
    return place.kind == TableKind::kMulticast ? previous_->Multicast(place.index)
                                               : Entry(*previous_, place);
  };
  if (previous_ && mask != 0 && before() != mask) {
    first_rerouted_.emplace_back(epoch_, context_.now);
    previous_ = nullptr;
    watching_ = !damaged_.empty();
  }
  return true;
}

std::uint8_t& Router::Pointer(const TablePlace& place) {
  if (std::uint8_t* const pointer = PointerIfMade(place)) return *pointer;
  std::unique_ptr<Pointers>& all = pointers_[static_cast<std::size_t>(place.kind)];
  if (!all) all = std::make_unique<Pointers>();
  (*all)[place.port] =
      std::make_unique<std::uint8_t[]>(static_cast<std::size_t>(context_.topology->supernodes()));
  return *PointerIfMade(place);
}

std::uint8_t* Router::PointerIfMade(const TablePlace& place) const {
  const std::unique_ptr<Pointers>& all = pointers_[static_cast<std::size_t>(place.kind)];
  if (!all || !(*all)[place.port]) return nullptr;
  return &(*all)[place.port][place.intra ? static_cast<std::size_t>(own_supernode()) : place.index];
}

PortId Router::Guess(NodeId destination, PortId in) const {
  if (destination >= forwards_from_) return kNoPort;
  const TablePlace place = DirectPlace(destination, in);
  const PortMask mask = Direct(place);
  if (mask == 0) return kNoPort;
  const bool several = (mask & (mask - 1)) != 0;
  const std::uint8_t* const pointer = several ? PointerIfMade(place) : nullptr;
  return Candidate(mask, pointer ? *pointer : 0);
}

void Router::FetchGuess(NodeId destination, PortId in) const {
  if (destination >= forwards_from_) return;
  const TablePlace place = DirectPlace(destination, in);
  FetchLine(&Direct(place));
  FetchLine(PointerIfMade(place));
}

}  // namespace percs
