// Forwarding tables of the InfiniBand tree: what a subnet manager writes into crossbars, here part
// of the table set of an epoch like the tables of hubs. Every crossbar has one port for each
// endpoint of the tree (static destination routing); a triblade has its one port, or none for what
// cannot be reached, so that a send fails at once.
#pragma once

#include "absl/status/status.h"
#include "emulator/routing/planner.h"

namespace percs {

// Sets the tables of all nodes of the tree. REQUIRES: a tree; `tables` by node.
void PlanForwarding(const Topology& topology, const Failures& failures, TableSet* tables);

// Follows the tables from every leaf crossbar to every endpoint, by the cables of the topology
// alone. FAILED_PRECONDITION names a walk that uses a dead cable, runs into a hole, ends elsewhere
// or passes more than seven crossbars; triblades whose table does not say what their leaf can
// reach; and a cycle of links whose packets may wait for each other. Adds pairs of endpoints that
// are cut off to `report`.
absl::Status CheckForwarding(const Topology& topology, const Failures& failures,
                             const TableSet& tables, CheckReport* report);

}  // namespace percs
