// Collectives by name. A name is `layer` or `layer:algorithm`; layers are p2p, shm, smartmap, cau,
// hybrid and hierarchical.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "emulator/collectives/collective.h"
#include "emulator/runtime/node_runtime.h"
#include "emulator/scenario/loop_workload.h"

namespace percs {

struct CollectiveName {
  Operation operation;
  std::string name;
  std::string what;
};
// All there are; the first of an operation is its default.
const std::vector<CollectiveName>& CollectiveNames();

// INVALID_ARGUMENT names what there is, or what does not fit.
absl::Status CheckCollectiveName(const CollectiveWorkload& workload);
// The task's part. REQUIRES: CheckCollectiveName is OK.
std::unique_ptr<Collective> MakeCollective(const CollectiveWorkload& workload, Rank& rank);

}  // namespace percs
