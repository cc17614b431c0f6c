// A random network, or what is left of it when everything that does not matter for a failure is
// left out. Written as text, it replays exactly.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "emulator/scenario/scenario.h"

namespace percs::reference {

struct NetworkPart {
  // What can be left out, one by one.
  enum Kind { kPackets, kFaults, kPings };
  static constexpr std::array<const char*, 3> kNames = {"packets", "faults", "pings"};

  std::uint64_t seed = 0;
  bool random_tables = false;
  std::array<std::vector<std::size_t>, 3> kept;  // numbers in the whole network, ascending

  static NetworkPart Whole(std::uint64_t seed, bool random_tables);
  // INVALID_ARGUMENT for what ToText cannot have written.
  static absl::StatusOr<NetworkPart> Parse(const std::string& text);
  std::string ToText() const;
  Scenario ToScenario() const;
  bool operator==(const NetworkPart&) const = default;
};

// Leaves out whatever it can as long as the rest fails. REQUIRES: fails(part).
NetworkPart Shrink(NetworkPart part, const std::function<bool(const NetworkPart&)>& fails);

}  // namespace percs::reference
