// Messages between windows of two hubs: `percsctl perf` for hubs, and `percsctl ping`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "client/percsctl/outcome.h"

namespace percs {

struct WindowPerfArguments {
  std::string from, to, scenario, mode = "rdma", format;
  std::vector<std::string> settings;
  std::vector<std::uint64_t> bytes;
  std::uint64_t iterations = 20;
};
// `sn0-d0-h0`, whatever its numbers are.
bool IsHubName(const std::string& name);
Outcome PerfWindows(const WindowPerfArguments& arguments);

}  // namespace percs
