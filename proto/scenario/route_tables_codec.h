// Route tables on the wire: equal neighbours once, each hub with the hash of its tables.
#pragma once

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "emulator/routing/planner.h"
#include "percs/v1/common.pb.h"

namespace percs {

using NodeTablesList = google::protobuf::RepeatedPtrField<v1::NodeTables>;

void TablesToProto(const std::vector<NodeId>& nodes,
                   const std::function<std::shared_ptr<const HubTables>(NodeId)>& tables,
                   NodeTablesList* list);
// Tables of nodes 0 to `nodes` - 1, in that order and none left out. INVALID_ARGUMENT says which is
// missing or what is wrong with it; DATA_LOSS, that they are not those of their hash.
absl::StatusOr<TableSet> TablesFromProto(const NodeTablesList& list, NodeId nodes);

}  // namespace percs
