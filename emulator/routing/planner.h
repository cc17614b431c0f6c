// Plans the route tables of every hub from the topology and what network management believes to be
// broken. Pure: same input, same tables.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "emulator/routing/route_tables.h"
#include "emulator/topology/topology.h"

namespace percs {

// What alerts have told network management so far. A link is named by its lower (node, port) end.
struct Failures {
  std::set<std::pair<NodeId, PortId>> links;
  std::set<NodeId> hubs;
  bool empty() const { return links.empty() && hubs.empty(); }
};

using TableSet = std::vector<std::shared_ptr<const HubTables>>;  // by node

class Planner {
 public:
  explicit Planner(const Topology& topology);
  ~Planner();

  // Equal tables are shared. Blades need no way of their own: packets for one are routed to the hub
  // it is plugged into, those from one start there as if that hub had sent them, always direct.
  TableSet Plan(const Failures& failures) const;
  // The same, entry by entry, but only what differs from the last Replan is planned again; hubs
  // that it does not touch keep their tables.
  const TableSet& Replan(const Failures& failures);

 private:
  const Topology& topology_;
  std::unique_ptr<class FabricPlan> plan_;
  TableSet tables_;  // the plan's, with trees
};

// A pair of hubs that packets cannot travel between, and why: no VC-legal path, or one that tables
// cannot express without taking from other pairs (docs/routing.md).
struct Unreachable {
  NodeId source, destination;
  std::string witness;
};

struct CheckReport {
  static constexpr std::size_t kListedMax = 100;
  std::vector<Unreachable> unreachable;  // the first kListedMax
  std::uint64_t unreachable_pairs = 0;
  int hops_max = 0;           // of direct routes
  int indirect_hops_max = 0;  // of indirect ones, counted by position in L0 D0 L1 D1 L2
  int multicast_hops_max = 0;
  std::uint64_t members_unreachable = 0;  // of multicast groups, no VC-legal path
};

// Proves a table set: follows every possible choice of every pair of live hubs; every walk ends at
// its destination within the VC positions and over live links, every multicast group is a tree that
// reaches every member once, and so is the clock's to every hub. FAILED_PRECONDITION with a witness
// for an entry that names a dead link, and for a walk into a hole, a loop or out of positions
// although tables could serve the pair; other pairs are reported, not an error. Also proves the
// channel dependency graph (links x VCs) free of cycles under `policy`, with the cycle as witness.
absl::StatusOr<CheckReport> CheckTables(const Topology& topology, const Failures& failures,
                                        const TableSet& tables, VcPolicy policy);

}  // namespace percs
