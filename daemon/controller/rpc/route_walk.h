// Follows route tables from one hub to another, over every choice they leave.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "emulator/packet/route_mode.h"
#include "emulator/routing/route_tables.h"
#include "emulator/topology/topology.h"
#include "percs/v1/control.pb.h"

namespace percs {

using TablesOf = std::function<std::shared_ptr<const HubTables>(NodeId)>;

struct RouteRequest {
  NodeId source = 0, destination = 0;
  RouteMode mode = RouteMode::kHwDirect;
  int middle = -1;  // indirect modes: only over this supernode; -1: over every open one
};

// Routes under the position policy; at most `routes_max` of them.
std::vector<v1::Route> WalkRoutes(const Topology& topology, const TablesOf& tables,
                                  const RouteRequest& request, std::size_t routes_max);

}  // namespace percs
