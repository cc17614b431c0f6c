// Searches random networks for one that fails: the engine against the reference router, with the
// planner's tables and with random ones, and split over several processes. tests/run tries the same
// few thousand every time; this goes on where nobody has looked.
#include "tests/differential/network_check.h"
#include "tests/differential/network_part.h"
#include "tests/differential/random_network.h"
#include "tests/soak/campaign.h"

namespace percs::reference {
namespace {

std::string FailureOfNetwork(std::uint64_t seed) {
  for (const bool random_tables : {false, true}) {
    std::string why = FailureOf(NetworkPart::Whole(seed, random_tables));
    if (!why.empty()) return why;
  }
  return "";
}

bool FailsApart(const NetworkPart& part) {
  return !soak::FailureApart([&] { return FailureOf(part); }).empty();
}

std::string SmallestPart(std::uint64_t seed) {
  for (const bool random_tables : {false, true}) {
    const NetworkPart whole = NetworkPart::Whole(seed, random_tables);
    if (FailsApart(whole)) return Shrink(whole, FailsApart).ToText();
  }
  return "";
}

absl::StatusOr<soak::Campaign::Replayed> ReplayPart(const std::string& text, const std::string&) {
  const auto part = NetworkPart::Parse(text);
  if (!part.ok()) return part.status();
  return soak::Campaign::Replayed{Describe(part->ToScenario()),
                                  [part = *part] { return FailureOf(part); }};
}

}  // namespace
}  // namespace percs::reference

int main(int argc, char** argv) {
  using namespace percs::reference;
  return percs::soak::Main(
      {"network_campaign", "network", "networks",
       "add its number to kFoundNetworks in tests/differential/differential_test.cc.",
       [](std::uint64_t seed) { return Describe(RandomNetwork(seed)); }, FailureOfNetwork,
       SmallestPart, ReplayPart},
      std::vector<std::string>(argv + 1, argv + argc));
}
