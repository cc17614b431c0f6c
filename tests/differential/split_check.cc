#include "tests/differential/split_check.h"

#include <utility>

#include "emulator/sim/run.h"
#include "fmt/format.h"

namespace percs::reference {

std::vector<std::string> SplitAgainst(const Scenario& scenario, const Digest& one,
                                      decltype(test::SplitOptions::tamper) tamper) {
  std::vector<std::string> wrong;
  test::SplitOptions options;
  options.processes = 1 + static_cast<int>(scenario.seed % 4);
  options.seed = scenario.seed;
  options.tamper = std::move(tamper);
  const auto split = test::SplitRun(scenario, options);
  // Some of these networks have links too short for several processes, and say so.
  if (split.status().code() == absl::StatusCode::kInvalidArgument) return wrong;
  if (!split.ok()) {
    return {
        fmt::format("{} processes: {}", options.processes, std::string(split.status().message()))};
  }
  for (const std::string& violation : split->violations)
    wrong.push_back(fmt::format("{} processes: {}", options.processes, violation));
  if (split->digest != one)
    wrong.push_back(fmt::format("{} processes: another digest than one", options.processes));
  return wrong;
}

std::vector<std::string> RunSplit(const Scenario& scenario,
                                  decltype(test::SplitOptions::tamper) tamper) {
  const auto one = RunScenario(scenario, {});
  if (!one.ok()) return {fmt::format("one process: {}", std::string(one.status().message()))};
  std::vector<std::string> wrong = one->violations;
  for (std::string& difference : SplitAgainst(scenario, one->digest, std::move(tamper)))
    wrong.push_back(std::move(difference));
  return wrong;
}

}  // namespace percs::reference
