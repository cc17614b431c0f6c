// The working state of a plan: what each pair of supernodes offers, and what follows for the tables
// of every hub. For other failures, it plans again only what they affect.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "emulator/routing/detours.h"
#include "emulator/routing/live_fabric.h"
#include "emulator/routing/planner.h"
#include "emulator/topology/topology.h"

namespace percs {

// One copy of each distinct table.
class TablePool {
 public:
  std::shared_ptr<const RouteTable> Intern(RouteTable table);

 private:
  std::unordered_multimap<std::uint64_t, std::shared_ptr<const RouteTable>> tables_;
};

class FabricPlan {
 public:
  FabricPlan(const Topology& topology, const Failures& failures);

  // The same tables as a new plan for these failures, entry by entry.
  void Update(const Failures& failures);
  const TableSet& tables() const { return tables_; }

 private:
  // Ports by supernode: own D ports to it; those, or L ports to the exit hubs if there are none;
  // both (only kept where supernodes have parallel D links).
  struct Rows {
    std::vector<PortMask> own_d, toward, striped;
  };
  // The same as tables, with the ports inside the supernode; shared with the hubs' tables.
  struct BaseTables {
    std::shared_ptr<const RouteTable> own_d, toward, striped;
  };
  using Pair = std::pair<int, int>;  // from, to
  using ClosedMiddles = std::vector<std::uint32_t>;

  std::size_t Hubs() const { return topology_.hubs(); }
  bool parallel() const { return topology_.spec().d_links_per_pair > 1; }
  const std::vector<PortMask>& OwnD(NodeId node) const {
    return edits_[node] ? edits_[node]->own_d : base_[node].own_d->inter;
  }
  const std::vector<PortMask>& Toward(NodeId node) const {
    return edits_[node] ? edits_[node]->toward : base_[node].toward->inter;
  }
  std::vector<PortMask> Intra(NodeId node, int hops_max) const;
  void MarkChanges(const Failures& before, const Failures& after);
  void MarkLink(NodeId node, PortId port);
  void PlanPair(int from, int to);
  void SetRow(NodeId node, int to, PortMask own_d, PortMask toward, PortMask striped);
  void PlanPairs();
  void PlanDetours();
  void MarkEntries(const std::vector<TableEntry>& entries);
  std::vector<ClosedMiddles> CloseMiddles() const;
  std::shared_ptr<const RouteTable> WithDetours(std::shared_ptr<const RouteTable> table,
                                                NodeId node, PortId in_port);
  std::shared_ptr<const RouteTable> MakeStriped(NodeId node, const RouteTable& direct);
  void MakeBase(NodeId node, const std::vector<PortMask>& intra);
  std::shared_ptr<const HubTables> MakeHub(NodeId node);
  std::shared_ptr<const HubTables> MakeBlade(NodeId blade);
  void MakeHubs();

  const Topology& topology_;
  Failures failures_;
  std::optional<LiveFabric> live_;
  std::vector<BaseTables> base_;                  // by node
  std::map<Pair, std::vector<NodeId>> stranded_;  // hubs with no such way to a supernode
  std::map<Pair, bool> closed_pairs_;             // not good for the second half of an indirect way
  std::vector<TableEntry> entries_;               // what detours change, by node, then port
  std::vector<ClosedMiddles> closed_;             // by source supernode
  TableSet tables_;

  // Of one update.
  TablePool pool_;
  std::vector<std::unique_ptr<Rows>> edits_;  // by node; null: as in base_
  std::vector<bool> supernodes_changed_;      // an L link or a hub of it went or came
  std::vector<Pair> pairs_changed_;
  std::vector<bool> hubs_changed_;
  std::vector<DLink> links_;
};

}  // namespace percs
