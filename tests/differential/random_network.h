// Small random scenarios: every corner of docs/semantics.md part B within a few thousand seeds.
#pragma once

#include <cstdint>
#include <string>

#include "emulator/scenario/scenario.h"
#include "tests/differential/reference_router.h"

namespace percs::reference {

// Numbers from here on are networks of switches: a torus, a HyperX and a fat tree in turn.
inline constexpr std::uint64_t kGraphNetworks = 1'000'000'000'000;

// The same seed gives the same scenario on every host. `workload` is a ScriptedWorkload.
Scenario RandomNetwork(std::uint64_t seed);

// Tables that mix the planner's entries with random and empty ones, other ones for every input
// port.
TableSet RandomTables(const Topology& topology, std::uint64_t seed);

// The whole scenario as text, enough to rebuild it by hand.
std::string Describe(const Scenario& scenario);

}  // namespace percs::reference
