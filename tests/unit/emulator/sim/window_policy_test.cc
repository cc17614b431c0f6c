// When a window opens, and why not: each case of the rule, and what two copies of it once disagreed
// on. How long it is where supernodes run one after the other, and that no result depends on it.
#include "emulator/sim/window_policy.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "emulator/base/random.h"
#include "emulator/sim/run.h"
#include "tests/support/seed.h"

namespace percs {
namespace {

constexpr Time kStallLimit = 10 * kMicrosecond;

Standing Busy(Time next) {
  Standing standing;
  standing.next = standing.next_foreground = next;
  standing.left.unfinished = 1;
  return standing;
}

struct Case {
  std::string name;
  std::function<void(Standing&)> change;  // of a busy fabric
  WindowDecision decision;
};

TEST(WindowPolicy, DecidesByTheFirstReasonThatApplies) {
  const auto done = [](Standing& s) { s.left = {}; };
  const auto quiet = [](Standing& s) { s.next = s.next_foreground = kNever; };
  const std::vector<Case> cases = {
      {"busy", [](Standing&) {}, WindowDecision::kOpen},
      {"done", done, WindowDecision::kDone},
      {"done, commands to come", [&](Standing& s) { done(s), s.commands_to_come = true; },
       WindowDecision::kOpen},
      {"done, kept open", [&](Standing& s) { done(s), s.kept_open = true; }, WindowDecision::kOpen},
      {"done and quiet, kept open", [&](Standing& s) { done(s), quiet(s), s.kept_open = true; },
       WindowDecision::kIdle},
      {"only the clock is left, kept open",
       [&](Standing& s) {
         done(s);
         s.kept_open = s.has_clock = true;
         s.next_foreground = kNever;
       },
       WindowDecision::kIdle},
      {"done, programs expected", [&](Standing& s) { done(s), s.programs_expected = true; },
       WindowDecision::kOpen},
      {"quiet with work left, programs expected",
       [&](Standing& s) { quiet(s), s.programs_expected = true; }, WindowDecision::kIdle},
      {"programs owe", [&](Standing& s) { done(s), s.programs_owe = true; }, WindowDecision::kHeld},
      {"quiet with work left", quiet, WindowDecision::kDeadlock},
      {"quiet with work left, a hub lost", [&](Standing& s) { quiet(s), s.whole = false; },
       WindowDecision::kDone},
      {"a hub lost, still busy", [](Standing& s) { s.whole = false; }, WindowDecision::kOpen},
      {"only faults wait", [](Standing& s) { s.faults_wait = true; }, WindowDecision::kFaultsWait},
      {"past the end", [](Standing& s) { s.next = kMillisecond; }, WindowDecision::kStopped},
      {"quiet is past the end as well, done first", [&](Standing& s) { quiet(s), done(s); },
       WindowDecision::kDone},
  };
  for (const Case& c : cases) {
    WindowPolicy policy(c.decision == WindowDecision::kStopped ? kMillisecond : 0, kStallLimit);
    Standing standing = Busy(kMicrosecond);
    c.change(standing);
    EXPECT_EQ(policy.Decide(standing, [] { return 0; }), c.decision) << c.name;
  }
}

TEST(WindowPolicy, TheEndIsExactlyWhereTheScenarioSays) {
  WindowPolicy policy(kMillisecond, kStallLimit);
  const auto still = [] { return 0; };
  EXPECT_EQ(policy.Decide(Busy(kMillisecond - 1), still), WindowDecision::kOpen);
  EXPECT_EQ(policy.Decide(Busy(kMillisecond), still), WindowDecision::kStopped);
}

// Standings at successive multiples of the stall limit.
class Stalls : public testing::Test {
 protected:
  WindowDecision Next(bool resident, bool idle, std::uint64_t flits) {
    Standing standing = Busy(now_);
    now_ += kStallLimit;
    standing.has_clock = true;
    if (idle) standing.next_foreground = kNever;
    standing.left.resident_packets = resident ? 3 : 0;
    return policy_.Decide(standing, [flits] { return flits; });
  }
  WindowPolicy policy_{0, kStallLimit};
  Time now_ = 0;
};

TEST_F(Stalls, ResidentPacketsTwiceWithoutAMoveAreADeadlock) {
  EXPECT_EQ(Next(true, false, 7), WindowDecision::kOpen);
  EXPECT_EQ(Next(true, false, 8), WindowDecision::kOpen);
  EXPECT_EQ(Next(true, false, 8), WindowDecision::kDeadlock);
}

TEST_F(Stalls, OnlyTheClockTwiceWithoutAMoveIsADeadlock) {
  EXPECT_EQ(Next(false, true, 7), WindowDecision::kOpen);
  EXPECT_EQ(Next(false, true, 7), WindowDecision::kDeadlock);
}

// The controller once took these for a deadlock, and a run in one process did not.
TEST_F(Stalls, ResidentPacketsAndThenOnlyTheClockAreNone) {
  EXPECT_EQ(Next(true, false, 7), WindowDecision::kOpen);
  EXPECT_EQ(Next(false, true, 7), WindowDecision::kOpen);
  EXPECT_EQ(Next(true, false, 7), WindowDecision::kOpen);
}

TEST_F(Stalls, AreLookedForOnlyEveryStallLimit) {
  int asked = 0;
  for (Time now = 0; now < 10 * kStallLimit; now += kStallLimit / 5)
    policy_.Decide(Busy(now), [&] { return ++asked; });
  EXPECT_EQ(asked, 10);
}

TEST_F(Stalls, OfAFabricWithLostHubsAreNone) {
  for (int i = 0; i < 3; ++i) {
    Standing standing = Busy(now_);
    now_ += kStallLimit;
    standing.whole = false;
    standing.left.resident_packets = 3;
    EXPECT_EQ(policy_.Decide(standing, [] { return 7; }), WindowDecision::kOpen);
  }
}

// --- The horizon

Time HorizonOf(const Scenario& scenario, int threads = 1) {
  const auto topology = Topology::Create(scenario.topology);
  EXPECT_TRUE(topology.ok()) << topology.status();
  const auto fabric = Fabric::Create(scenario, Placement::Single(topology->nodes()), threads);
  EXPECT_TRUE(fabric.ok()) << fabric.status();
  return (*fabric)->horizon();
}

Scenario TwoSupernodes() {
  Scenario scenario;
  scenario.topology = {2, 1, 4, 1};
  scenario.workload = PatternWorkload{.count = 1};
  return scenario;
}

constexpr Time kCredit = 50 * kNanosecond;  // processing, with the default parameters

TEST(Horizon, IsWhatLiesBetweenSupernodes) {
  Scenario scenario = TwoSupernodes();
  scenario.parameters.d.wire = 300 * kNanosecond;
  EXPECT_EQ(HorizonOf(scenario), 300 * kNanosecond + kCredit);
  EXPECT_EQ(HorizonOf(scenario, 2), 300 * kNanosecond + kCredit) << "a supernode for each thread";
  scenario.cables.push_back({{0, kDFirst}, 70 * kNanosecond});
  EXPECT_EQ(HorizonOf(scenario), 70 * kNanosecond + kCredit);
}

TEST(Horizon, IsTheLookaheadWhereAnythingElseMayCrossOrResultsMayDependOnIt) {
  const auto change = [](const std::function<void(Scenario&)>& change, int threads = 1) {
    Scenario scenario = TwoSupernodes();
    change(scenario);
    return HorizonOf(scenario, threads);
  };
  const Time lookahead = 55 * kNanosecond;
  EXPECT_EQ(change([](Scenario& s) { s.topology.supernodes = 1; }), lookahead);
  EXPECT_EQ(change([](Scenario& s) { s.topology.clock.emplace(); }), lookahead);
  EXPECT_EQ(change([](Scenario& s) { s.service.probe_rounds = 1; }), lookahead);
  EXPECT_EQ(change([](Scenario& s) { s.parameters.management_latency = lookahead; }), lookahead);
  EXPECT_EQ(change([](Scenario&) {}, 3), lookahead) << "a supernode is divided between threads";
  const auto fault = [](Scenario& s) {
    FaultSpec spec;
    spec.id = "cut";
    spec.kind = FaultKind::kLinkDown;
    spec.select.link = LinkEnd{0, kDFirst};
    spec.at = kMicrosecond;
    s.faults.push_back(spec);
  };
  EXPECT_EQ(change(fault), lookahead);
}

Scenario Drawn(RandomStream& random) {
  Scenario scenario;
  scenario.seed = random.Next();
  scenario.topology = {static_cast<int>(2 + random.Below(3)), static_cast<int>(1 + random.Below(2)),
                       static_cast<int>(1 + random.Below(4)), 1};
  P7ihParameters& p = scenario.parameters;
  p.d.wire = random.Below(400) * kNanosecond;
  if (random.Below(2)) p.ll.buffer_flits = p.lr.buffer_flits = p.d.buffer_flits = 16;
  if (random.Below(3) == 0) {
    AllToAllWorkload all;
    all.bytes = 1 + random.Below(6000);
    all.reliable = random.Below(2);
    scenario.workload = all;
    return scenario;
  }
  PatternWorkload pattern;
  pattern.pattern = random.Below(3) ? Pattern::kUniform : Pattern::kHotspot;
  pattern.message_bytes = 1 + random.Below(random.Below(2) ? 128 : 4000);
  pattern.load = 0.1 + random.Unit();
  pattern.measure = 500 * kNanosecond;
  pattern.reliable = random.Below(2);
  if (random.Below(2)) pattern.payload = PayloadMode::kVerified;
  scenario.workload = pattern;
  return scenario;
}

TEST(Horizon, ChangesNoResult) {
  PERCS_TRACE_SEED();
  RandomStream random(test::Seed(), "horizon");
  std::uint64_t longer = 0, shorter = 0;
  for (int i = 0; i < 24; ++i) {
    const Scenario scenario = Drawn(random);
    RunOptions watched;  // ends windows at the lookahead
    watched.watch = [](const Fabric&, std::uint64_t, bool) {};
    const Executor backwards = [](int count, absl::FunctionRef<void(int)> body) {
      for (int part = count; part-- > 0;) body(part);
    };
    RunOptions threads;
    threads.threads = scenario.topology.supernodes;
    threads.executor = &backwards;
    const auto expected = RunScenario(scenario, watched);
    const auto one = RunScenario(scenario, RunOptions());
    const auto several = RunScenario(scenario, threads);
    ASSERT_TRUE(expected.ok() && one.ok() && several.ok())
        << expected.status() << one.status() << several.status();
    EXPECT_EQ(one->digest, expected->digest) << "scenario " << i;
    EXPECT_EQ(several->digest, expected->digest) << "scenario " << i;
    EXPECT_EQ(one->virtual_time, expected->virtual_time) << "scenario " << i;
    EXPECT_TRUE(one->violations.empty()) << one->violations.front();
    longer += one->windows, shorter += expected->windows;
  }
  EXPECT_LT(longer, shorter);
}

}  // namespace
}  // namespace percs
