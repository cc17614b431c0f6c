// Route tables of a network of switches (emulator/topology/switch_graph.h), all by destination.
#pragma once

#include "emulator/routing/planner.h"

namespace percs {

// Planned routes, as far as they are alive, to every destination that they lead to from all leaves;
// to others shortest detours. A hub has one table for packets that are new or came up, and one for
// those that came down. REQUIRES: a graph.
TableSet PlanGraph(const Topology& topology, const Failures& failures);

// CheckTables for a graph. Also proves that every pair of live leaves that links can join by a
// detour is served.
absl::StatusOr<CheckReport> CheckGraphTables(const Topology& topology, const Failures& failures,
                                             const TableSet& tables, VcPolicy policy);

}  // namespace percs
