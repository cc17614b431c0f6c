// A scenario from a file, with what the command line changes in it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "emulator/scenario/scenario.h"
#include "emulator/sim/check_scenario.h"
#include "percs/v1/scenario.pb.h"

namespace percs {

struct ScenarioInput {
  v1::Scenario message;
  Scenario scenario;      // built from it
  std::string directory;  // of the file; trace files are relative to it
};

// Reads, applies `settings` (each `path=value`, the path as in error messages; errors say `--set`),
// those of a point of a sweep (`over`; errors say `--over`) and the seed, builds. INVALID_ARGUMENT
// or NOT_FOUND with one line per error.
absl::StatusOr<ScenarioInput> LoadScenario(const std::string& path,
                                           const std::vector<std::string>& settings,
                                           std::optional<std::uint64_t> seed,
                                           const std::vector<std::string>& over = {});

// `topology.supernodes=4`, `faults[0].at=7us`, `workload.pattern.load=0.3`. What all groups of a
// group have can be set at once: `routing.mode=hw_indirect` for routing.fifo and routing.rdma.
// Appends the paths that were set to `paths`, if given. INVALID_ARGUMENT as `setting: why`.
absl::Status ApplySetting(v1::Scenario* message, const std::string& setting,
                          std::vector<std::string>* paths = nullptr);

// CheckScenario, with the file's name before what it says.
absl::Status CheckLoaded(const std::string& path, const Scenario& scenario, RunsOn where);

// How many packets the workload will deliver, for an estimate of the time left; 0 if it cannot be
// said. Acknowledgements count.
std::uint64_t ExpectedPackets(const Scenario& scenario);
// End of the run in virtual time as far as the scenario says it; 0 if it does not.
Time ExpectedEnd(const Scenario& scenario);

}  // namespace percs
