// Ways around failures that the plain rule (own D port, else L to an exit hub) does not cover:
// L L D L, a third supernode, and leaving a supernode to come back into it.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "emulator/routing/live_fabric.h"
#include "emulator/topology/topology.h"

namespace percs {

// One entry of one table: source table (in_port == kNoPort) or that of a port.
struct TableEntry {
  NodeId node = 0;
  PortId in_port = kNoPort;
  bool intra = false;
  int destination = 0;  // hub in supernode, or supernode
  PortMask ports = 0;
};

// Tables choose by (place, destination supernode), so an entry once used by a way binds every later
// way through the same place: it may narrow the entry, which takes nothing from the earlier ones,
// but not widen it. Of all ways that respect this, the one that serves most hubs of the destination
// supernode wins, then the one without a third supernode, then the shortest; equally good hops all
// enter the table.
class Detours {
 public:
  using Ports = std::vector<const PortMask*>;  // by node, then supernode
  // `own_d`: D ports that a packet takes at an exit hub. `toward`: what the plain rule puts into
  // the source tables, so which exit hubs each hub uses.
  Detours(const Topology& topology, const LiveFabric& live, const Ports& own_d, const Ports& toward)
      : topology_(topology), live_(live), own_d_(own_d), toward_(toward) {}

  // From `source` to another supernode. Returns how many of its hubs that serves. Later ways may
  // narrow entries so that asking again serves more.
  int AddInter(NodeId source, int supernode);
  // From `source` to a hub of its own supernode that L hops do not reach.
  void AddIntra(NodeId source, int hub);

  // All entries, by node, then port.
  std::vector<TableEntry> Entries() const;

 private:
  struct Way {
    HubMask reaches = 0;  // hubs of the destination supernode; 0 = no way
    int cost = 0;         // hops, and more for a third supernode
    PortMask ports = 0;   // next hops, all equally good
  };
  // Where a packet stands and what for: it came in on `in_port` at `position`, bound for
  // `supernode`; only ways that reach all of `must` count.
  struct Place {
    NodeId node;
    PortId in_port;
    Position position;
    int supernode;
    HubMask must;
  };

  static std::uint64_t Key(const TableEntry& entry) {
    return static_cast<std::uint64_t>(entry.node) << 32 |
           static_cast<std::uint64_t>(entry.in_port) << 16 |
           static_cast<std::uint64_t>(entry.intra) << 15 |
           static_cast<std::uint64_t>(entry.destination);
  }
  void Set(const TableEntry& entry) { entries_[Key(entry)] = entry.ports; }
  // The entry that already stands at this place, or 0.
  PortMask Fixed(const Place& place) const;
  PortMask Candidates(const Place& place) const;
  HubMask LiveExits(int from, int to) const;
  Way Best(const Place& place) const;
  Way After(const Place& place, PortId port) const;
  Place Next(const Place& place, PortId port, Position position) const;
  static void Offer(const Way& way, PortId port, const Place& place, Way* best);
  void Commit(const Place& place, const Way& way);

  const Topology& topology_;
  const LiveFabric& live_;
  const Ports& own_d_;
  const Ports& toward_;
  absl::flat_hash_map<std::uint64_t, PortMask> entries_;
};

}  // namespace percs
