#include "tests/differential/split_check.h"

#include <utility>

#include "emulator/sim/run.h"
#include "fmt/format.h"

namespace percs::reference {

std::vector<std::string> RunSplit(const Scenario& scenario,
                                  decltype(test::SplitOptions::tamper) tamper) {
  const auto one = RunScenario(scenario, {});
  if (!one.ok()) return {fmt::format("one process: {}", std::string(one.status().message()))};
  std::vector<std::string> wrong = one->violations;
  test::SplitOptions options;
  options.processes = 1 + static_cast<int>(scenario.seed % 4);
  options.seed = scenario.seed;
  options.tamper = std::move(tamper);
  const auto split = test::SplitRun(scenario, options);
  // Some of these networks have links too short for several processes, and say so.
  if (split.status().code() == absl::StatusCode::kInvalidArgument) return wrong;
  if (!split.ok()) {
    wrong.push_back(
        fmt::format("{} processes: {}", options.processes, std::string(split.status().message())));
    return wrong;
  }
  for (const std::string& violation : split->violations)
    wrong.push_back(fmt::format("{} processes: {}", options.processes, violation));
  if (split->digest != one->digest) {
    wrong.push_back(fmt::format("{} processes: another digest than one", options.processes));
  }
  return wrong;
}

}  // namespace percs::reference
