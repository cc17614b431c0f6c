// Searches random scenarios, drawn from the schema, for one that fails: that crashes, deadlocks, or
// gives another result in another way to run it.
#include "fmt/format.h"
#include "proto/scenario/describe.h"
#include "proto/scenario/reader.h"
#include "tests/generate/random_scenario.h"
#include "tests/generate/scenario_check.h"
#include "tests/soak/campaign.h"

namespace percs::generate {
namespace {

// What is wrong, without the numbers that change when the scenario becomes smaller.
std::string KindOf(const std::string& why) { return why.substr(0, why.find(':')); }

std::string SmallestScenario(std::uint64_t seed) {
  v1::Scenario scenario = RandomScenario(seed);
  const auto failure = [&] { return soak::FailureApart([&] { return FailureOf(scenario); }); };
  const std::string why = failure();
  if (why.empty()) return "";
  ShrinkMessage(&scenario, [&] { return KindOf(failure()) == KindOf(why); });
  return fmt::format("# {}\n{}", why, PrintScenarioYaml(scenario));
}

absl::StatusOr<soak::Campaign::Replayed> ReplayScenario(const std::string& text,
                                                        const std::string& path) {
  const auto scenario = ReadScenarioText(text, path, ScenarioFormat::kYaml);
  if (!scenario.ok()) return scenario.status();
  return soak::Campaign::Replayed{PrintScenarioYaml(*scenario),
                                  [scenario = *scenario] { return FailureOf(scenario); }};
}

}  // namespace
}  // namespace percs::generate

int main(int argc, char** argv) {
  using namespace percs::generate;
  return percs::soak::Main(
      {"scenario_campaign", "scenario", "scenarios",
       "write the smallest part to a file in tests/generate/found.",
       [](std::uint64_t seed) { return percs::PrintScenarioYaml(Bounded(RandomScenario(seed))); },
       [](std::uint64_t seed) { return FailureOf(seed); }, SmallestScenario, ReplayScenario},
      std::vector<std::string>(argv + 1, argv + argc));
}
