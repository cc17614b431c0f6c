#include "emulator/metrics/blade_counters.h"

#include <map>

#include "emulator/base/check.h"
#include "emulator/cell/blade_context.h"

namespace percs {
namespace {

// What is counted for each Cell appears once per Cell.
std::array<std::string, kBladeCounters> MakeNames() {
  std::map<std::string, int> times, seen;
  const cell::BladeStats stats;
  stats.Visit([&](const char* name, std::uint64_t) { ++times[name]; });
  std::array<std::string, kBladeCounters> names;
  std::size_t i = 0;
  stats.Visit([&](const char* name, std::uint64_t) {
    PERCS_CHECK(i < names.size());
    names[i] = name;
    if (times[name] > 1) names[i] += "_cell" + std::to_string(seen[name]++);
    ++i;
  });
  PERCS_CHECK(i == names.size());
  return names;
}

}  // namespace

const std::array<std::string, kBladeCounters>& BladeCounterNames() {
  static const auto* const names = new std::array<std::string, kBladeCounters>(MakeNames());
  return *names;
}

}  // namespace percs
