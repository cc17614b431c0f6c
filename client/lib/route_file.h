// Route tables as a file that people read and programs write: JSON, ports by name.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "emulator/routing/planner.h"
#include "emulator/topology/topology.h"

namespace percs {

struct RouteFile {
  int supernodes = 0, hubs_per_supernode = 0;
  Epoch epoch = 0;                 // 0: planned, never installed
  std::vector<std::string> names;  // of the nodes that `tables` are of
  TableSet tables;
};

RouteFile MakeRouteFile(const Topology& topology, Epoch epoch, const std::vector<NodeId>& nodes,
                        TableSet tables);
std::string PrintRoutes(const RouteFile& file);
// INVALID_ARGUMENT says where in the text, or at which table of which node, something is wrong.
absl::StatusOr<RouteFile> ParseRoutes(const std::string& text);
absl::StatusOr<RouteFile> ReadRouteFile(const std::string& path);
// INVALID_ARGUMENT unless the file has tables of exactly these nodes, in order.
absl::Status CheckRouteFile(const RouteFile& file, const Topology& topology);

// One line per entry that differs: node, table, entry, ports before and after.
std::vector<std::string> DiffRoutes(const RouteFile& before, const RouteFile& after);

}  // namespace percs
