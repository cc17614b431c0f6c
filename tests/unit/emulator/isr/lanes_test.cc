// Lanes of links: spares first, then the rate in proportion, then the link is down until enough are
// back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "emulator/scenario/link_settings.h"
#include "emulator/sim/run.h"
#include "fmt/format.h"

namespace percs {
namespace {

constexpr std::uint64_t kLanePackets = 2000;

FaultSpec Lost(LinkEnd sender, std::uint32_t lanes, Time at = 0) {
  return SetLanesLost(at, sender, lanes);
}

// Whole packets from hub 0 to hub 1, as fast as the one link takes them.
Scenario Saturated(const TopologySpec& topology) {
  Scenario s;
  s.topology = topology;
  ScriptedWorkload script;
  for (std::uint64_t i = 0; i < kLanePackets; ++i) {
    script.packets.push_back({0, 0, 1, static_cast<WindowId>(i % 8), 0, 2048});
  }
  s.workload = script;
  s.parameters.lr.buffer_flits = 64;  // more than the credit round trip
  s.reroute = false;
  return s;
}

struct Step {
  std::uint32_t lost;
  Time flit_time;  // 0: the link is down
};
struct Staircase {
  const char* name;
  TopologySpec topology;
  PortId port;
  std::vector<Step> steps;
};

TEST(Lanes, BandwidthGoesDownTheStaircase) {
  const Staircase staircases[] = {
      {"LL: 64 + 0, at least 32",
       {1, 1, 2, 1},
       0,
       {{0, 5334}, {1, 5419}, {16, 7112}, {32, 10'668}, {33, 0}}},
      {"LR: 5 + 1, at least 4",
       {1, 2, 1, 1},
       kLrFirst,
       {{0, 25'600}, {1, 25'600}, {2, 32'000}, {3, 0}}},
      {"D: 10 + 2, at least 8",
       {2, 1, 1, 1},
       kDFirst,
       {{0, 12'800}, {1, 12'800}, {2, 12'800}, {3, 14'223}, {4, 16'000}, {5, 0}, {12, 0}}},
  };
  for (const Staircase& stairs : staircases) {
    for (const Step& step : stairs.steps) {
      SCOPED_TRACE(fmt::format("{}, {} lost", stairs.name, step.lost));
      Scenario s = Saturated(stairs.topology);
      s.faults = {Lost({0, stairs.port}, step.lost)};
      const auto result = RunScenario(s, {});
      ASSERT_TRUE(result.ok()) << result.status();
      EXPECT_THAT(result->violations, testing::IsEmpty());
      EXPECT_EQ(result->total.ports[stairs.port].lanes_lost, step.lost);
      EXPECT_EQ(result->total.packets_delivered, step.flit_time > 0 ? kLanePackets : 0);
      EXPECT_EQ(result->total.alerts_raised, step.flit_time > 0 ? 0u : 2u);
      const double per_flit = static_cast<double>(result->virtual_time) / (16.0 * kLanePackets);
      if (step.flit_time > 0) {
        EXPECT_NEAR(per_flit / static_cast<double>(step.flit_time), 1, 0.01);
      }
    }
  }
}

TEST(Lanes, EachDirectionHasItsOwn) {
  Scenario s = Saturated({2, 1, 1, 1});
  s.faults = {Lost({1, kDFirst}, 4)};  // the way back
  const auto result = RunScenario(s, {});
  ASSERT_TRUE(result.ok()) << result.status();
  const double per_flit = static_cast<double>(result->virtual_time) / (16.0 * kLanePackets);
  EXPECT_NEAR(per_flit / 12'800, 1, 0.01);
}

TEST(Lanes, ARateChangesWithTheNextCommitment) {
  // Alone: the only packet's commitment of 16 flits plays out; a packet granted later is slower.
  Scenario s = Saturated({2, 1, 1, 1});
  s.workload = ScriptedWorkload{{{0, 0, 1}, {2 * kMicrosecond, 0, 1}}};
  std::vector<Time> times[2];
  for (const bool lost : {false, true}) {
    s.faults.clear();
    if (lost)
      s.faults = {Lost({0, kDFirst}, 4, 200 * kNanosecond)};  // flits 7 to 16 are still to leave
    RunOptions options;
    options.on_delivery = [&](NodeId, const Delivery& d) { times[lost].push_back(d.time); };
    ASSERT_TRUE(RunScenario(s, options).ok());
    ASSERT_EQ(times[lost].size(), 2u);
  }
  EXPECT_EQ(times[1][0], times[0][0]);
  // The tail is 16 flit times of 16,000 instead of 12,800 ps behind the grant.
  EXPECT_EQ(times[1][1] - times[0][1], 16 * 3200);
}

TEST(Lanes, ALinkWithoutLanesIsRoutedRoundAndComesBackWhenRepaired) {
  Scenario s;
  s.topology = {1, 1, 4, 1};
  s.workload = AllToAllWorkload{262144, Schedule::kSpread, true, PayloadMode::kVerified};
  s.faults = {Lost({0, 0}, 40, 5 * kMicrosecond), Lost({0, 0}, 0, 100 * kMicrosecond)};
  // Told to come up while it cannot: it stays down.
  s.faults.insert(s.faults.end(),
                  {SetLinkDown(50 * kMicrosecond, {0, 0}), SetLinkUp(60 * kMicrosecond, {0, 0})});
  const auto result = RunScenario(s, {});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(result->violations, testing::IsEmpty());
  ASSERT_EQ(result->reroutes.size(), 2u);
  EXPECT_THAT(result->reroutes[0].down, testing::ElementsAre(LinkEnd{0, 0}));
  EXPECT_EQ(result->reroutes[0].raised, 5 * kMicrosecond);
  EXPECT_THAT(result->reroutes[1].up, testing::ElementsAre(LinkEnd{0, 0}));
  EXPECT_EQ(result->reroutes[1].raised, 100 * kMicrosecond);
  EXPECT_EQ(result->total.messages_delivered, 12u);
}

TEST(Lanes, MoreThanThereAreAreRefused) {
  Scenario s = Saturated({2, 1, 1, 1});
  s.faults = {Lost({0, kDFirst}, 13)};
  const absl::Status status = RunScenario(s, {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("10 + 2 spare; write 0 to 12"));
}

}  // namespace
}  // namespace percs
