// A process with many hubs fetches into the cache what they will look at. That changes nothing: the
// same machine, divided among processes so small that they do not, has the same result.
#include "emulator/sim/hub_pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "emulator/scenario/link_settings.h"
#include "emulator/sim/run.h"
#include "tests/support/split_run.h"

namespace percs {
namespace {

constexpr int kSupernodes = 5, kHubs = 32, kProcesses = 2;
static_assert(kSupernodes * kHubs > static_cast<int>(HubPipeline::kFewHubs));
static_assert(kSupernodes * kHubs / kProcesses <= static_cast<int>(HubPipeline::kFewHubs));

Scenario Traffic(std::uint64_t bytes, double load) {
  Scenario scenario;
  scenario.topology = {
      .supernodes = kSupernodes, .drawers = 4, .hubs = kHubs / 4, .d_links_per_pair = 8};
  PatternWorkload uniform;
  uniform.message_bytes = bytes;
  uniform.load = load;
  uniform.measure = 3 * kMicrosecond;
  scenario.workload = uniform;
  return scenario;
}

void ExpectTheSame(const Scenario& scenario) {
  const auto many = RunScenario(scenario, {});
  const auto few = test::SplitRun(scenario, test::Processes(kProcesses));
  ASSERT_TRUE(many.ok()) << many.status();
  ASSERT_TRUE(few.ok()) << few.status();
  EXPECT_THAT(many->violations, testing::IsEmpty());
  EXPECT_GT(many->total.packets_delivered, 1000u);
  EXPECT_EQ(many->digest, few->digest);
}

TEST(HubPipeline, PacketsOfOneFlitTakeTheSameTimes) { ExpectTheSame(Traffic(128, 0.1)); }

// More arrive at a hub in a window than are fetched.
TEST(HubPipeline, SoDoSaturatedHubs) { ExpectTheSame(Traffic(128, 0.9)); }

TEST(HubPipeline, SoDoMessagesOverLinksThatFail) {
  Scenario scenario = Traffic(5000, 0.3);
  auto& pattern = std::get<PatternWorkload>(scenario.workload);
  pattern.reliable = true;
  for (const int port : {0, 8, kDFirst + 0})
    scenario.faults.push_back(SetLinkDown(kMicrosecond, {0, static_cast<PortId>(port)}));
  scenario.faults.push_back(SetLinkUp(2 * kMicrosecond, {0, PortId{0}}));
  ExpectTheSame(scenario);
}

TEST(HubPipeline, SoDoIndirectAndAdaptiveRoutes) {
  for (const RouteMode mode : {RouteMode::kHwIndirect, RouteMode::kAdaptive}) {
    Scenario scenario = Traffic(512, 0.4);
    scenario.routing.fifo.mode = mode;
    ExpectTheSame(scenario);
  }
}

}  // namespace
}  // namespace percs
