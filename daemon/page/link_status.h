// Links as the Control service lists them: for the controller, and for a run in one process.
#pragma once

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "daemon/metrics/node_state.h"
#include "emulator/scenario/p7ih.h"
#include "emulator/topology/topology.h"
#include "percs/v1/control.pb.h"

namespace percs {

// `sn0-d0-h0/sn0-d1-h4`.
std::string EndsOf(const Topology& topology, LinkEnd link);
// The end by which a link is named: the lower one.
LinkEnd LowerEnd(const Topology& topology, LinkEnd link);
// Links of the node `where`, or of all hubs of the supernode `sn3`, or of all nodes (""), each by
// its lower end. NOT_FOUND or INVALID_ARGUMENT: there is none of this name.
absl::StatusOr<std::vector<LinkEnd>> LinksAt(const Topology& topology, const std::string& where);
// The nodes at the ends of `links`, ascending.
std::vector<NodeId> EndsOfAll(const Topology& topology, const std::vector<LinkEnd>& links);

// Fills in the state by `state_of` of the ends of `links`, each by its lower end; null for a node
// without a state. `now`: the virtual time of these states.
using StateOfNode = absl::FunctionRef<const NodeState*(NodeId)>;
void ListLinks(const Topology& topology, const P7ihParameters& parameters, Time now,
               const std::vector<LinkEnd>& links, StateOfNode state_of, v1::ListLinksReply* reply);
// Of states in the order of their nodes; null if there is none of this one.
const NodeState* FindState(const std::vector<NodeState>& states, NodeId node);

}  // namespace percs
