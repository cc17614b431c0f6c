// When a window opens, and why not: each case of the rule, and what two copies of it once disagreed
// on.
#include "emulator/sim/window_policy.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

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
         s.kept_open = s.has_background = true;
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
    standing.has_background = true;
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

TEST_F(Stalls, TheNextLookIsAStallLimitAfterTheEventThatTheLastOneFound) {
  policy_.Decide(Busy(7), [] { return 1; });
  EXPECT_EQ(policy_.next_look(), kStallLimit + 7);
  policy_.Decide(Busy(kStallLimit + 6), [] { return 1; });
  EXPECT_EQ(policy_.next_look(), kStallLimit + 7);
}

TEST_F(Stalls, OfAFabricWithLostHubsAreNone) {
  for (int i = 0; i < 3; ++i) {
    Standing standing = Busy(now_);
    now_ += kStallLimit;
    standing.whole = false;
    standing.left.resident_packets = 3;
    EXPECT_EQ(policy_.Decide(standing, [] { return 7; }), WindowDecision::kOpen);
    EXPECT_GT(policy_.next_look(), standing.next);
  }
}

}  // namespace
}  // namespace percs
