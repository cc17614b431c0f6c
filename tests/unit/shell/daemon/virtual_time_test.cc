// Where virtual time is between windows. Method: a master is given reports and windows by hand, and
// the wall clock is a number; every expected time is computed in the test from pace and wall time.
#include "daemon/controller/run/virtual_time.h"

#include <gtest/gtest.h>

namespace percs {
namespace {

using TimePhase = VirtualTime::Phase;
using std::chrono::microseconds;

constexpr Time kVirtualTimeLookahead = 55'000;
const VirtualTime::Clock::time_point kWallBegin{};

Pacing PacedByMicroseconds() {
  return {.live = true, .pace = kMicrosecond};
}  // 1 ps in a microsecond

void Report(WindowMaster& master, Time next) {
  v1::WindowReport report;
  report.set_next_event(next);
  ASSERT_TRUE(master.OnReport(0, report).ok());
}

TEST(VirtualTimeTest, WithoutAPaceItIsTheEndOfTheLastWindow) {
  WindowMaster master(1, kVirtualTimeLookahead, kVirtualTimeLookahead);
  VirtualTime time({}, master);
  EXPECT_FALSE(time.started());
  EXPECT_EQ(time.WallSeconds(kWallBegin), 0);
  time.Start(kWallBegin);
  Report(master, 100);
  EXPECT_EQ(time.Now(TimePhase::kMoving, kWallBegin + microseconds(900)), 0);
  master.Open(300);
  EXPECT_EQ(time.Now(TimePhase::kMoving, kWallBegin + microseconds(900)), 300);
  time.End(kWallBegin + microseconds(500));
  EXPECT_EQ(time.WallSeconds(kWallBegin + microseconds(900)), 500e-6);
}

TEST(VirtualTimeTest, APacePassesBetweenWindowsButNotBeyondTheNextEventOrThePause) {
  WindowMaster master(1, kVirtualTimeLookahead, kVirtualTimeLookahead);
  VirtualTime time(PacedByMicroseconds(), master);
  time.Start(kWallBegin);
  Report(master, 500);
  EXPECT_EQ(time.Standstill(TimePhase::kMoving, kWallBegin + microseconds(200)), 200);
  EXPECT_EQ(time.Standstill(TimePhase::kMoving, kWallBegin + microseconds(700)), 500);
  time.PauseAt(300);
  EXPECT_EQ(time.Standstill(TimePhase::kMoving, kWallBegin + microseconds(700)), 300);
  EXPECT_EQ(time.Standstill(TimePhase::kPaused, kWallBegin + microseconds(100)), 300);
  EXPECT_EQ(time.Standstill(TimePhase::kEnded, kWallBegin + microseconds(700)), 0);
  EXPECT_EQ(time.Standstill(TimePhase::kRetaking, kWallBegin + microseconds(700)), 0)
      << "what is retaken may come before the next event";
}

// What a process sends in the window may arrive before all that is known. Another pace once took
// effect after such an arrival.
TEST(VirtualTimeTest, APaceDoesNotPassWhileAWindowIsOpen) {
  WindowMaster master(2, kVirtualTimeLookahead, kVirtualTimeLookahead);
  VirtualTime time(PacedByMicroseconds(), master);
  time.Start(kWallBegin);
  const auto sends = [](std::uint32_t to, Time arrival) {
    v1::WindowReport report;
    report.set_next_event(5'000);
    report.add_peers(to);
    report.add_batches(1);
    report.add_arrivals(arrival);
    report.add_credits(kNever);
    report.add_carried("");
    return report;
  };
  Report(master, 5'000);
  ASSERT_TRUE(master.OnReport(1, sends(0, 100)).ok());
  EXPECT_EQ(master.Open(200), std::vector<std::uint32_t>{0});
  EXPECT_EQ(time.Now(TimePhase::kMoving, kWallBegin + microseconds(900)), 200);
  EXPECT_EQ(time.SetPace(kMillisecond, TimePhase::kMoving, kWallBegin + microseconds(900)), 200);
  ASSERT_TRUE(master.OnReport(0, sends(1, 300)).ok());
  EXPECT_EQ(time.Now(TimePhase::kMoving, kWallBegin + microseconds(901)), 300);
}

TEST(VirtualTimeTest, WhatWasSaidIsNeverTakenBack) {
  WindowMaster master(1, kVirtualTimeLookahead, kVirtualTimeLookahead);
  VirtualTime time(PacedByMicroseconds(), master);
  time.Start(kWallBegin);
  Report(master, 500);
  EXPECT_EQ(time.Said(TimePhase::kMoving, kWallBegin + microseconds(400)), 400);
  EXPECT_EQ(time.Said(TimePhase::kMoving, kWallBegin + microseconds(300)), 400);
  time.NotBefore(450);
  time.NotBefore(200);
  EXPECT_EQ(time.Now(TimePhase::kMoving, kWallBegin), 450)
      << "nothing takes effect before a command";
}

TEST(VirtualTimeTest, AfterAPauseThePaceContinuesFromThePause) {
  WindowMaster master(1, kVirtualTimeLookahead, kVirtualTimeLookahead);
  VirtualTime time(PacedByMicroseconds(), master);
  time.Start(kWallBegin);
  Report(master, 5'000);
  time.PauseAt(100);
  time.LeavePause(TimePhase::kPaused, kWallBegin + microseconds(1'000));
  time.PauseAt(std::nullopt);
  EXPECT_EQ(time.not_before(), 100);
  EXPECT_EQ(time.Now(TimePhase::kMoving, kWallBegin + microseconds(1'000)), 100);
  EXPECT_EQ(time.Now(TimePhase::kMoving, kWallBegin + microseconds(1'050)), 150);
}

TEST(VirtualTimeTest, AnotherPaceHoldsFromWhereItIs) {
  WindowMaster master(1, kVirtualTimeLookahead, kVirtualTimeLookahead);
  VirtualTime time(PacedByMicroseconds(), master);
  time.Start(kWallBegin);
  Report(master, 5'000);
  // Wall seconds are no exact numbers: a picosecond less may have passed.
  EXPECT_NEAR(time.SetPace(3'000'000, TimePhase::kMoving, kWallBegin + microseconds(100)), 100, 1);
  EXPECT_NEAR(time.Now(TimePhase::kMoving, kWallBegin + microseconds(110)), 130, 2);
  const Time held = time.SetPace(0, TimePhase::kMoving, kWallBegin + microseconds(120));
  EXPECT_NEAR(held, 160, 2);
  EXPECT_EQ(time.Now(TimePhase::kMoving, kWallBegin + microseconds(900)), held)
      << "without a pace windows alone move it";
  EXPECT_EQ(time.SetPace(2'000'000, TimePhase::kMoving, kWallBegin + microseconds(1'000)), held);
  EXPECT_NEAR(time.Now(TimePhase::kMoving, kWallBegin + microseconds(1'100)), held + 200, 1);
}

TEST(VirtualTimeTest, FaultsThatAreAllThatIsLeftHoldItUntilTheyAreReleased) {
  WindowMaster master(1, kVirtualTimeLookahead, kVirtualTimeLookahead);
  VirtualTime time(PacedByMicroseconds(), master);
  time.Start(kWallBegin);
  Report(master, 5'000);
  time.HoldForFaults(TimePhase::kMoving, kWallBegin + microseconds(70));
  time.HoldForFaults(TimePhase::kMoving, kWallBegin + microseconds(90));
  EXPECT_EQ(time.Now(TimePhase::kMoving, kWallBegin + microseconds(900)), 70);
  time.ReleaseFaults(kWallBegin + microseconds(900));
  EXPECT_EQ(time.Now(TimePhase::kMoving, kWallBegin + microseconds(910)), 80);
}

TEST(VirtualTimeTest, WhatProgramsAskedForTakesEffectWhereTheyHeldIt) {
  WindowMaster master(1, kVirtualTimeLookahead, kVirtualTimeLookahead);
  VirtualTime time(PacedByMicroseconds(), master);
  time.Start(kWallBegin);
  Report(master, 40);
  master.Open(60);
  Report(master, 5'000);
  time.HoldForPrograms(true, kWallBegin + microseconds(80));
  EXPECT_EQ(time.Now(TimePhase::kMoving, kWallBegin + microseconds(900)), 60)
      << "where the last window ended, not by how much of the pace has passed since";
  time.HoldForPrograms(false, kWallBegin + microseconds(900));
  EXPECT_EQ(time.TakeReleased(TimePhase::kMoving, kWallBegin + microseconds(950)), 60);
  EXPECT_EQ(time.TakeReleased(TimePhase::kMoving, kWallBegin + microseconds(950)), 110)
      << "only once";
  time.HoldForPrograms(true, kWallBegin + microseconds(960));
  time.HoldForPrograms(false, kWallBegin + microseconds(970));
  time.ForgetReleased();
  EXPECT_NE(time.TakeReleased(TimePhase::kMoving, kWallBegin + microseconds(980)), 60);
}

}  // namespace
}  // namespace percs
