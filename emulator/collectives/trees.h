// The tree of CAUs that collectives among tasks run on, as part of a scenario.
#pragma once

#include "emulator/scenario/scenario.h"

namespace percs {

// The scenario itself; with a tree over all nodes of the placement if its workload is a collective
// that needs one and it has none.
Scenario WithCollectiveTree(Scenario scenario);
// INVALID_ARGUMENT if the workload needs a tree and its participants are not the nodes that have
// tasks.
absl::Status CheckCollectiveTree(const CollectiveWorkload& workload,
                                 const std::vector<TreeSpec>& trees);

}  // namespace percs
