// Searches histories of a fabric in the simulator (tests/simulator) for one that breaks what the
// documents promise.
#include <chrono>
#include <cstdlib>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "fmt/format.h"
#include "spdlog/spdlog.h"
#include "tests/simulator/history.h"
#include "tests/soak/campaign.h"

namespace percs::sim {
namespace {

std::string Describe(const Outcome& outcome) {
  std::string text = outcome.log.empty() ? "" : absl::StrJoin(outcome.log, "\n") + "\n";
  return text + fmt::format(
                    "{} events, {} processes ended, {} losses, {} rejoins, {} commands "
                    "acknowledged; trace {:016x}\n{}\n",
                    outcome.events, outcome.crashes, outcome.losses, outcome.rejoins,
                    outcome.commands, outcome.trace,
                    !outcome.failure.empty() ? "FAILED: " + outcome.failure
                    : outcome.finished       ? "the run finished"
                                             : "the run failed, as it may");
}

std::string Print(std::uint64_t seed) { return Describe(RunHistory(seed)); }
std::string FailureOf(std::uint64_t seed) { return RunHistory(seed).failure; }

// A history is what its seed says: the file names it.
std::string AsFile(std::uint64_t seed) {
  const Outcome outcome = RunHistory(seed);
  return outcome.failure.empty() ? "" : fmt::format("history: {}\n", seed);
}

absl::StatusOr<soak::Campaign::Replayed> Replay(const std::string& text, const std::string&) {
  const std::size_t at = text.find("history: ");
  std::uint64_t seed = 0;
  if (at == std::string::npos ||
      !absl::SimpleAtoi(text.substr(at + 9, text.find('\n', at) - at - 9), &seed))
    return absl::InvalidArgumentError("it has no line \"history: SEED\"");
  return soak::Campaign::Replayed{Print(seed), [seed] { return FailureOf(seed); }};
}

}  // namespace
}  // namespace percs::sim

int main(int argc, char** argv) {
  using namespace percs::sim;
  return percs::soak::Main(
      {"control_campaign", "history", "histories", "write a unit test of what went wrong.", Print,
       FailureOf, AsFile, Replay},
      std::vector<std::string>(argv + 1, argv + argc));
}
