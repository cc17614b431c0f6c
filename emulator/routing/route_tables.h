// Route tables of a hub (paper 000 section VI): source tables used by packets the HFI injects and
// per-port tables used on every further hop; in each, intra- and inter-supernode routes apart,
// direct and indirect apart. An entry is the set of output ports a packet may take, as a mask.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "emulator/base/ids.h"

namespace percs {

enum class TableKind : std::uint8_t { kDirect, kStriped, kIndirect, kMulticast };
inline constexpr int kTableKinds = 3;  // that choose one port; kMulticast names all branches

// Names one entry of the tables of a hub.
struct TablePlace {
  TableKind kind = TableKind::kDirect;  // kStriped: source table only
  PortId port = kNoPort;                // link port; kNoPort or an HFI port: the source table
  bool intra = false;
  std::uint16_t index = 0;  // hub in supernode (intra) or supernode; kMulticast: group
  bool operator==(const TablePlace&) const = default;
};

// Routes out of one place of a hub. Immutable once installed; shared between ports and hubs when
// equal.
struct RouteTable {
  std::vector<PortMask> intra;  // by hub in supernode; empty mask = no route
  std::vector<PortMask> inter;  // by supernode; own supernode's entry is unused and 0
  PortMask Entry(const TablePlace& place) const {
    const std::vector<PortMask>& entries = place.intra ? intra : inter;
    return place.index < entries.size() ? entries[place.index] : 0;
  }
  bool operator==(const RouteTable&) const = default;
};

// All tables of one hub in one epoch.
struct HubTables {
  std::shared_ptr<const RouteTable> source_direct;
  std::shared_ptr<const RouteTable> source_striped;
  std::shared_ptr<const RouteTable> source_indirect;
  // By link port 0..46: what arrives there consults these.
  std::array<std::shared_ptr<const RouteTable>, kLinkPorts> port_direct;
  std::array<std::shared_ptr<const RouteTable>, kLinkPorts> port_indirect;
  // Middle supernodes that indirect routes from this hub must not use, as ClosedMiddle() of the
  // destination supernode and the middle one, sorted. A supernode without an entry in
  // source_indirect is closed anyway.
  std::vector<std::uint32_t> closed_middles;
  // By multicast group: ports that packets of the group leave by, all of them, and kDeliverHere if
  // the hub is a member. A blade has none.
  std::vector<PortMask> multicast;
  static constexpr PortMask kDeliverHere = PortMask{1} << kHfiFirst;
  // Of the tree of the global clock: ports that sync symbols are passed on by, kDeliverHere at the
  // source.
  PortMask clock = 0;
  // Of a node of the InfiniBand tree, which uses no other: the port towards each endpoint of the
  // tree (Topology), or kNoPort.
  std::vector<PortId> forwarding;
  // Of a SwitchGraph: destinations that packets go to by detours, ascending, with groups.
  std::vector<NodeId> detours;

  bool Detours(NodeId destination) const {
    return !detours.empty() && std::binary_search(detours.begin(), detours.end(), destination);
  }
  PortMask Multicast(std::size_t group) const {
    return group < multicast.size() ? multicast[group] : 0;
  }
  const std::shared_ptr<const RouteTable>& Table(TableKind kind, PortId port) const {
    if (port >= kLinkPorts) {
      return kind == TableKind::kDirect    ? source_direct
             : kind == TableKind::kStriped ? source_striped
                                           : source_indirect;
    }
    return kind == TableKind::kIndirect ? port_indirect[port] : port_direct[port];
  }
  bool Closed(int destination, int middle) const {
    return !closed_middles.empty() &&
           std::binary_search(closed_middles.begin(), closed_middles.end(),
                              ClosedMiddle(destination, middle));
  }
  static constexpr std::uint32_t ClosedMiddle(int destination, int middle) {
    return static_cast<std::uint32_t>(destination) << 16 | static_cast<std::uint32_t>(middle);
  }

  std::uint64_t Hash() const;     // over contents; the hub verifies it before it acknowledges
  std::string Serialize() const;  // compact binary; equal tables are written once
  static absl::StatusOr<HubTables> Parse(absl::Span<const std::uint8_t> bytes);
};

// INVALID_ARGUMENT with the arithmetic if a table of such a machine does not fit into `budget`
// entries.
absl::Status CheckTableSize(int hubs_per_supernode, int supernodes, int budget);
// Likewise for the multicast table, which has an entry for each group.
absl::Status CheckMulticastTableSize(std::size_t groups, int budget);

}  // namespace percs
