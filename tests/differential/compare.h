// The differences between what the engine did and what the reference router says.
#pragma once

#include <string>
#include <vector>

#include "tests/differential/reference_router.h"

namespace percs::reference {

// What was observed of one engine run.
struct Observed {
  std::vector<std::vector<ReferenceDelivery>> deliveries;  // by node, in the engine's order
  std::vector<NodeStats> stats;                            // by node
};

// Empty if equal: every delivery in order, every counter of docs/semantics.md part C, latencies. Of
// deliveries only the first difference of each node is told.
std::vector<std::string> Differences(const ReferenceResult& reference, const Observed& engine);

}  // namespace percs::reference
