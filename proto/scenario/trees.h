// Trees of CAUs in scenarios and commands, and their results as messages.
#pragma once

#include <string>
#include <vector>

#include "emulator/management/tree_status.h"
#include "emulator/metrics/node_stats.h"
#include "emulator/scenario/scenario.h"
#include "percs/v1/common.pb.h"
#include "percs/v1/scenario.pb.h"
#include "proto/scenario/errors.h"

namespace percs {

// INVALID_ARGUMENT or NOT_FOUND for names and sizes that cannot be.
absl::StatusOr<TreeSpec> BuildTree(const v1::Tree& message, const Topology& topology);
// Every problem goes to the list.
std::vector<TreeSpec> BuildTrees(const v1::Scenario& message, const Topology& topology,
                                 ErrorList* errors);
CauWorkload BuildCauLoop(const v1::CauLoop& message, const std::vector<TreeSpec>& trees,
                         ErrorList* errors);

void TreeToProto(const TreeStatus& tree, const Topology& topology, bool vertices,
                 v1::TreeStatus* message);
// All trees, or the one called `name` with its vertices. NOT_FOUND: there is none.
absl::Status ListTrees(const std::vector<TreeStatus>& trees, const Topology& topology,
                       const std::string& name,
                       google::protobuf::RepeatedPtrField<v1::TreeStatus>* list);

}  // namespace percs
