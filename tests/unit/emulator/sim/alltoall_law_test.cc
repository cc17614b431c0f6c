// Method: raw 2,048-byte packets, one per pair of hubs, `spread` schedule; bandwidth over the whole
// run, start and end included, against the bound of paper 000 section VII-A. PERCS_LAW_D and
// PERCS_LAW_PACKETS choose another number of D links per hub and of packets per pair; d = 2 takes a
// minute and runs in tests/validation.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "emulator/sim/run.h"

namespace percs {
namespace {

int FromEnvironment(const char* name, int otherwise) {
  const char* value = std::getenv(name);
  return value ? std::atoi(value) : otherwise;
}

TEST(AllToAllLaw, DirectRoutingReachesTheBoundWithinTwoPercent) {
  const int d = FromEnvironment("PERCS_LAW_D", 1);
  AllToAllWorkload workload;
  workload.bytes = 2048 * static_cast<std::uint64_t>(FromEnvironment("PERCS_LAW_PACKETS", 1));
  workload.reliable = false;
  workload.payload = PayloadMode::kLengths;
  Scenario scenario;
  scenario.topology.supernodes = 32 * d + 1;
  scenario.workload = workload;
  const auto result = RunScenario(scenario, RunOptions());
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->violations.empty());
  const double pairs_per_hub = 31 + 1024.0 * d;
  const double bound = pairs_per_hub * std::min(10.0 / 1024, 5.0 / (1 + 64 * d));  // GB/s per hub
  const double seconds = static_cast<double>(result->virtual_time) * 1e-12;
  const double reached = pairs_per_hub * static_cast<double>(workload.bytes) / seconds / 1e9;
  RecordProperty("reached_gb_per_s", std::to_string(reached));
  EXPECT_GE(reached, 0.98 * bound)
      << "d = " << d << ": " << reached << " of " << bound << " GB/s per hub";
  EXPECT_LE(reached, bound);
}

}  // namespace
}  // namespace percs
