// What must hold for every network: engine and reference router agree, and no way to run the engine
// gives another digest.
#pragma once

#include <string>
#include <vector>

#include "tests/differential/network_part.h"
#include "tests/differential/reference_router.h"

namespace percs::reference {

struct Outcome {
  std::vector<std::string> differences;  // none if both agree and every checker is content
  ReferenceResult reference;
  Digest digest;  // of the engine
};

// With the planner's tables, and those of reroutes; or with random ones, which need a scenario that
// does not reroute.
Outcome RunBoth(const Scenario& scenario, bool random_tables);

// Why the part fails; empty if it does not. The planner's tables go with one process against
// several, too.
std::string FailureOf(const NetworkPart& part);

}  // namespace percs::reference
