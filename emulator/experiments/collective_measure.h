// The benchmark loop by itself: on a fabric as small as its nodes need, in process, to the end.
#pragma once

#include "absl/status/statusor.h"
#include "emulator/scenario/loop_workload.h"
#include "emulator/sim/run.h"

namespace percs {

// Full drawers, then full supernodes, as many as the nodes need; between two supernodes one D link
// per hub. INVALID_ARGUMENT for none, and for more than 512 nodes.
absl::StatusOr<TopologySpec> FabricOf(std::uint32_t nodes);
absl::StatusOr<Scenario> CollectiveScenario(const CollectiveWorkload& workload);
// INTERNAL if a result was wrong or a check of the run failed.
absl::StatusOr<RunResult> MeasureCollective(const CollectiveWorkload& workload);

}  // namespace percs
