// Windows by hand. Method: three processes report; the windows, who is granted and what must be in
// before are compared with what rule 5 of docs/semantics.md says.
#include "daemon/controller/run/window_master.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace percs {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr Time kLookahead = 55'000, kCrossing = 75'000;

v1::WindowReport Report(Time next, std::int64_t unfinished = 0) {
  v1::WindowReport report;
  report.set_next_event(next);
  report.set_unfinished(unfinished);
  return report;
}

v1::WindowReport Sent(Time next, std::uint32_t to, std::uint64_t batch, Time arrival) {
  v1::WindowReport report = Report(next);
  report.add_peers(to);
  report.add_batches(batch);
  report.add_arrivals(arrival);
  report.add_credits(kNever);
  report.add_carried("");
  return report;
}

v1::WindowReport SentCredits(Time next, std::uint32_t to, std::uint64_t batch, Time arrival) {
  v1::WindowReport report = Sent(next, to, batch, kNever);
  report.set_credits(0, arrival);
  return report;
}

v1::WindowGrant GrantOf(WindowMaster& master, std::uint32_t process) {
  v1::WindowGrant grant;
  master.FillGrant(process, &grant);
  return grant;
}

TEST(WindowMasterTest, OnlyProcessesWithSomethingToDoAreGranted) {
  WindowMaster master(3, kLookahead, kCrossing);
  EXPECT_TRUE(master.OnReport(0, Report(1000)).ok());
  EXPECT_TRUE(master.OnReport(1, Report(60'000)).ok());
  EXPECT_TRUE(master.OnReport(2, Report(kNever)).ok());
  EXPECT_EQ(master.next(), 1000);
  EXPECT_THAT(master.Open(master.next() + kLookahead), ElementsAre(0));
  EXPECT_TRUE(master.anyone_running());
  EXPECT_TRUE(master.OnReport(0, Report(70'000)).ok());
  EXPECT_FALSE(master.anyone_running());
  EXPECT_EQ(master.next(), 60'000);
  EXPECT_THAT(master.Open(master.next() + kLookahead), ElementsAre(0, 1));
}

// A controller that takes a run up tells processes what was journalled before it has their reports.
TEST(WindowMasterTest, AReportUnderWayDoesNotCancelWhatTheNextGrantWillTell) {
  WindowMaster before(2, kLookahead, kCrossing);
  for (int p = 0; p < 2; ++p) EXPECT_TRUE(before.OnReport(p, Report(0)).ok());
  EXPECT_THAT(before.Open(kLookahead), ElementsAre(0, 1));
  before.Wake(0, kLookahead);
  v1::SavedMaster saved;
  before.Save(&saved);
  WindowMaster master(2, kLookahead, kCrossing);
  ASSERT_TRUE(master.Restore(saved).ok());
  for (int p = 0; p < 2; ++p)
    EXPECT_TRUE(master.OnReport(p, Report(p == 0 ? kNever : 3 * kLookahead)).ok());
  EXPECT_EQ(master.next(), kLookahead);
  EXPECT_EQ(master.next_foreground(), kLookahead);
  EXPECT_THAT(master.Open(2 * kLookahead), ElementsAre(0));
  EXPECT_TRUE(master.OnReport(0, Report(kNever)).ok());
  EXPECT_EQ(master.next(), 3 * kLookahead) << "it has been told";
}

TEST(WindowMasterTest, AnArrivalWakesItsReceiverAndIsWaitedFor) {
  WindowMaster master(3, kLookahead, kCrossing);
  for (int p = 0; p < 3; ++p) EXPECT_TRUE(master.OnReport(p, Report(p == 0 ? 0 : kNever)).ok());
  master.Open(kLookahead);
  EXPECT_TRUE(master.OnReport(0, Sent(kNever, 2, 1, 90'000)).ok());
  EXPECT_EQ(master.next(), 90'000);
  EXPECT_THAT(master.Open(90'000 + kLookahead), ElementsAre(2));
  v1::WindowGrant grant;
  master.FillGrant(2, &grant);
  EXPECT_EQ(grant.end(), 90'000 + kLookahead);
  EXPECT_THAT(grant.peers(), ElementsAre(0));
  EXPECT_THAT(grant.batches(), ElementsAre(1));
  EXPECT_TRUE(master.OnReport(2, Report(kNever)).ok());
  EXPECT_EQ(master.next(), kNever);
}

TEST(WindowMasterTest, BatchesOfSeveralWindowsAddUp) {
  WindowMaster master(2, kLookahead, kCrossing);
  EXPECT_TRUE(master.OnReport(0, Report(0)).ok());
  EXPECT_TRUE(master.OnReport(1, Report(kNever)).ok());
  for (std::uint64_t batch = 1; batch <= 3; ++batch) {
    EXPECT_THAT(master.Open(master.next() + kLookahead), ElementsAre(0));
    const Time now = master.now();
    EXPECT_TRUE(master.OnReport(0, Sent(now, 1, batch, 400'000 + static_cast<Time>(batch))).ok());
  }
  EXPECT_TRUE(master.OnReport(0, Report(kNever)).ok());
  EXPECT_EQ(master.next(), 400'001);
  EXPECT_THAT(master.Open(master.next() + kLookahead), ElementsAre(1));
  v1::WindowGrant grant;
  master.FillGrant(1, &grant);
  EXPECT_THAT(grant.batches(), ElementsAre(3));
}

TEST(WindowMasterTest, ACommandWakesAProcess) {
  WindowMaster master(2, kLookahead, kCrossing);
  EXPECT_TRUE(master.OnReport(0, Report(kNever)).ok());
  EXPECT_TRUE(master.OnReport(1, Report(kNever)).ok());
  EXPECT_EQ(master.next(), kNever);
  master.Wake(1, 5);
  EXPECT_THAT(master.Open(master.next() + kLookahead), ElementsAre(1));
}

TEST(WindowMasterTest, WorkOfProcessesAddsUpToNothing) {
  WindowMaster master(2, kLookahead, kCrossing);
  EXPECT_TRUE(master.OnReport(0, Report(0, 4)).ok());
  EXPECT_TRUE(master.OnReport(1, Report(0, -3)).ok());
  EXPECT_FALSE(master.left().done());
  EXPECT_TRUE(master.OnReport(1, Report(0, -4)).ok());
  EXPECT_TRUE(master.left().done());
}

TEST(WindowMasterTest, OneThatTakesALostPlaceIsCountedFromThenOn) {
  WindowMaster master(2, kLookahead, kCrossing);
  EXPECT_TRUE(master.OnReport(0, Report(0)).ok());
  EXPECT_TRUE(master.OnReport(1, Report(10)).ok());
  master.Open(kLookahead);
  master.Lose(1);
  EXPECT_TRUE(master.OnReport(0, Sent(kNever, 1, 4, 100'000)).ok());
  master.Wake(1, 60'000);
  EXPECT_EQ(master.next(), kNever) << "nobody waits for it, and nothing goes there";
  master.Rejoin(1);
  EXPECT_FALSE(master.IsLost(1));
  master.Wake(1, 60'000);
  EXPECT_THAT(master.Open(60'000 + kLookahead), ElementsAre(1));
  v1::WindowGrant grant;
  master.FillGrant(1, &grant);
  EXPECT_EQ(grant.peers_size(), 0) << "what was for the one before is not for this one";
  EXPECT_TRUE(master.anyone_running());
  EXPECT_TRUE(master.OnReport(1, Report(kNever)).ok());
  EXPECT_FALSE(master.anyone_running());
}

// Far from each other in virtual time, as when some compute and others do not.
// A packet may be in several batches, some of which are on the stream.
TEST(WindowMasterTest, CarriedBatchesAreGrantedInTheirOrder) {
  WindowMaster before(3, kLookahead, kCrossing);
  const auto carried = [](const std::string& batch) {
    v1::WindowReport report = Sent(kNever, 1, 0, 90'000);
    report.set_carried(0, batch);
    return report;
  };
  EXPECT_TRUE(before.OnReport(0, Sent(kNever, 1, 1, 90'000)).ok());
  EXPECT_TRUE(before.OnReport(0, Sent(kNever, 1, 2, 90'000)).ok());
  EXPECT_TRUE(before.OnReport(0, carried("a")).ok());
  EXPECT_TRUE(before.OnReport(2, Sent(kNever, 1, 7, 90'000)).ok());
  EXPECT_TRUE(before.OnReport(0, carried("b")).ok());
  EXPECT_TRUE(before.OnReport(0, Sent(kNever, 1, 3, 90'000)).ok());
  v1::SavedMaster saved;
  before.Save(&saved);
  WindowMaster master(3, kLookahead, kCrossing);
  ASSERT_TRUE(master.Restore(saved).ok());
  EXPECT_THAT(master.Open(200'000), ElementsAre(1));
  const v1::WindowGrant grant = GrantOf(master, 1);
  EXPECT_THAT(grant.peers(), ElementsAre(0, 0, 2, 0, 0));
  EXPECT_THAT(grant.batches(), ElementsAre(2, 0, 7, 0, 3));
  EXPECT_THAT(grant.carried(), ElementsAre("", "a", "", "b", ""));
  EXPECT_EQ(GrantOf(master, 1).peers_size(), 0);
  EXPECT_THAT(std::string(master.OnReport(0, carried(std::string(4'097, 'x'))).message()),
              HasSubstr("a batch of 4097 bytes to process 1; at most 4096 are carried"));
}

TEST(WindowMasterTest, EachRunsAsFarAsNobodyCanReachIt) {
  WindowMaster master(3, kLookahead, kCrossing);
  EXPECT_TRUE(master.OnReport(0, Report(0)).ok());
  EXPECT_TRUE(master.OnReport(1, Report(50'000)).ok());
  EXPECT_TRUE(master.OnReport(2, Report(200'000)).ok());
  EXPECT_THAT(master.Open(1'000'000), ElementsAre(0, 1));
  EXPECT_EQ(GrantOf(master, 0).end(), 50'000 + kCrossing);
  EXPECT_EQ(GrantOf(master, 1).end(), kCrossing);
  EXPECT_EQ(master.now(), 0) << "all before has happened, and no more is certain";
  EXPECT_TRUE(master.OnReport(0, Report(300'000)).ok());
  EXPECT_EQ(master.unreported_from(0), 300'000) << "it has reported all before";
  EXPECT_EQ(master.unreported_from(1), 50'000) << "where its window began";
  EXPECT_EQ(master.unreported_from(2), 200'000);
  EXPECT_TRUE(master.OnReport(1, Report(2'000'000)).ok());
  EXPECT_EQ(master.unreported_from(1), 1'000'000);
  EXPECT_TRUE(master.in_span());
  EXPECT_THAT(master.Continue(), ElementsAre(2));
  EXPECT_EQ(GrantOf(master, 2).end(), 300'000 + kCrossing);
  EXPECT_TRUE(master.OnReport(2, Report(kNever)).ok());
  EXPECT_THAT(master.Continue(), ElementsAre(0));
  EXPECT_EQ(GrantOf(master, 0).end(), 1'000'000) << "not beyond the span";
  EXPECT_TRUE(master.OnReport(0, Report(kNever)).ok());
  EXPECT_FALSE(master.in_span());
  EXPECT_EQ(master.now(), 1'000'000);
  EXPECT_EQ(master.next(), 2'000'000);
  EXPECT_EQ(master.windows(), 3);
}

v1::WindowReport Reaches(Time next, Time earliest_output) {
  v1::WindowReport report = Report(next);
  report.set_earliest_output(earliest_output);
  return report;
}

TEST(WindowMasterTest, OneThatReachesNobodyForLongLetsTheOthersRun) {
  WindowMaster before(3, kLookahead, kCrossing);
  EXPECT_TRUE(before.OnReport(0, Reaches(0, 900'000)).ok());
  EXPECT_TRUE(before.OnReport(1, Report(50'000)).ok());
  EXPECT_TRUE(before.OnReport(2, Report(200'000)).ok());
  EXPECT_THAT(before.Open(1'000'000), ElementsAre(0, 1));
  EXPECT_EQ(before.now(), 0) << "where the earliest event is";
  EXPECT_EQ(before.window_end(0), 50'000 + kCrossing);
  EXPECT_EQ(before.window_end(1), 200'000 + kCrossing);
  EXPECT_TRUE(before.OnReport(1, Reaches(300'000, 800'000)).ok());
  v1::SavedMaster saved;
  before.Save(&saved);
  WindowMaster master(3, kLookahead, kCrossing);
  ASSERT_TRUE(master.Restore(saved).ok());
  EXPECT_TRUE(master.OnReport(0, Reaches(600'000, 700'000)).ok());
  EXPECT_THAT(master.Continue(), ElementsAre(2));
  EXPECT_EQ(master.window_end(2), 700'000);
  EXPECT_TRUE(master.OnReport(2, Report(kNever)).ok());
  EXPECT_THAT(master.Continue(), ElementsAre(0, 1));
  EXPECT_EQ(master.window_end(0), 800'000);
  EXPECT_EQ(master.window_end(1), 700'000);
}

// What it has said is about what it has.
TEST(WindowMasterTest, WhatArrivesIsAnsweredAtOnce) {
  WindowMaster master(2, kLookahead, kCrossing);
  EXPECT_TRUE(master.OnReport(0, Reaches(500'000, 900'000)).ok());
  EXPECT_TRUE(master.OnReport(1, Sent(350'000, 0, 1, 300'000)).ok());
  EXPECT_THAT(master.Open(1'000'000), ElementsAre(0, 1));
  EXPECT_EQ(master.window_end(1), 300'000 + kCrossing);
  EXPECT_TRUE(master.OnReport(1, Report(kNever)).ok());
  EXPECT_TRUE(master.OnReport(0, Reaches(500'000, 900'000)).ok());
  master.Wake(0, 400'000);
  EXPECT_THAT(master.Continue(), ElementsAre(0));
}

TEST(WindowMasterTest, ANextEventBeyondAllTimeIsNone) {
  WindowMaster master(2, kLookahead, kCrossing);
  EXPECT_TRUE(master.OnReport(0, Report(std::numeric_limits<Time>::max())).ok());
  EXPECT_TRUE(master.OnReport(1, Report(0)).ok());
  EXPECT_THAT(master.Open(1'000'000), ElementsAre(1));
  EXPECT_EQ(master.window_end(1), 1'000'000);
}

// It has stopped there because an answer to what it had sent might come.
TEST(WindowMasterTest, WhatArrivesAfterAProcessHasStoppedIsInTime) {
  WindowMaster master(2, kLookahead, kCrossing);
  EXPECT_TRUE(master.OnReport(0, Report(0)).ok());
  EXPECT_TRUE(master.OnReport(1, Report(kNever)).ok());
  EXPECT_THAT(master.Open(1'000'000), ElementsAre(0));
  EXPECT_EQ(GrantOf(master, 0).end(), 1'000'000);
  v1::WindowReport report = Sent(500'000, 1, 1, 80'000);
  report.set_reached(155'000);
  EXPECT_TRUE(master.OnReport(0, report).ok());
  EXPECT_THAT(master.Continue(), ElementsAre(1));
  EXPECT_THAT(std::string(master.OnReport(1, Sent(kNever, 0, 1, 154'999)).message()),
              HasSubstr("arrives at 154.999ns; but there virtual time is already 155ns"));
  EXPECT_TRUE(master.OnReport(1, Sent(kNever, 0, 1, 155'000)).ok());
  EXPECT_THAT(master.Continue(), ElementsAre(0));
}

// Of process 0, which has credits on their way and may wait for them.
TEST(WindowMasterTest, CreditsWakeOnlyWhoWaitsForThem) {
  v1::WindowReport waits = Report(800'000);
  waits.add_waits_for(1);
  for (const bool waiting : {false, true}) {
    WindowMaster before(2, kLookahead, kCrossing);
    EXPECT_TRUE(before.OnReport(0, waiting ? waits : Report(800'000)).ok());
    EXPECT_TRUE(before.OnReport(1, SentCredits(10'000, 0, 1, 90'000)).ok());
    EXPECT_THAT(before.Open(1'000'000), ElementsAre(1));
    EXPECT_EQ(GrantOf(before, 1).end(), (waiting ? 90'000 : 800'000) + kCrossing);
    v1::SavedMaster saved;
    before.Save(&saved);
    WindowMaster master(2, kLookahead, kCrossing);
    ASSERT_TRUE(master.Restore(saved).ok());
    EXPECT_TRUE(master.OnReport(1, Report(700'000)).ok());
    EXPECT_THAT(master.Continue(), waiting ? ElementsAre(0) : ElementsAre(1));
    if (!waiting) {
      EXPECT_TRUE(master.OnReport(1, Report(1'000'000)).ok());
      EXPECT_THAT(master.Continue(), ElementsAre(0));
    }
    EXPECT_THAT(GrantOf(master, 0).batches(), ElementsAre(1)) << "it has them in any case";
    EXPECT_EQ(GrantOf(master, 1).waiting_size(), waiting) << "who returns them hears it";
  }
}

// It may wait for them by the time at which it hears of the loss.
TEST(WindowMasterTest, CreditsOfALostProcessAreAwaited) {
  WindowMaster master(3, kLookahead, kCrossing);
  EXPECT_TRUE(master.OnReport(0, Report(800'000)).ok());
  EXPECT_TRUE(master.OnReport(1, SentCredits(kNever, 0, 2, 300'000)).ok());
  EXPECT_TRUE(master.OnReport(2, Report(0)).ok());
  master.Lose(1);
  EXPECT_THAT(master.Open(1'000'000), ElementsAre(2));
  EXPECT_EQ(GrantOf(master, 2).end(), 300'000 + kCrossing);
}

TEST(WindowMasterTest, AnotherControllerCompletesTheSpan) {
  WindowMaster before(2, kLookahead, kCrossing);
  EXPECT_TRUE(before.OnReport(0, Report(0)).ok());
  EXPECT_TRUE(before.OnReport(1, Report(400'000)).ok());
  EXPECT_THAT(before.Open(500'000), ElementsAre(0));
  v1::SavedMaster saved;
  before.Save(&saved);
  WindowMaster master(2, kLookahead, kCrossing);
  ASSERT_TRUE(master.Restore(saved).ok());
  EXPECT_TRUE(master.in_span());
  EXPECT_TRUE(master.anyone_running());
  EXPECT_EQ(master.unreported_from(0), 0);
  EXPECT_EQ(master.window_end(0), 400'000 + kCrossing);
  EXPECT_TRUE(master.OnReport(0, Report(kNever)).ok());
  EXPECT_THAT(master.Continue(), ElementsAre(1));
  master.Lose(1);
  EXPECT_FALSE(master.in_span()) << "nobody is left who has something to do in it";
}

TEST(WindowMasterTest, ReportsThatCannotBeAreRefused) {
  WindowMaster master(2, kLookahead, kCrossing);
  EXPECT_TRUE(master.OnReport(0, Report(0)).ok());
  EXPECT_TRUE(master.OnReport(1, Report(0)).ok());
  master.Open(kLookahead);
  const auto message = [&](const v1::WindowReport& report) {
    return std::string(master.OnReport(0, report).message());
  };
  EXPECT_THAT(message(Sent(0, 7, 1, 100'000)), HasSubstr("a batch to process 7"));
  EXPECT_THAT(message(Sent(0, 0, 1, 100'000)), HasSubstr("a batch to process 0"));
  EXPECT_THAT(message(Sent(0, 1, 1, 10)), HasSubstr("arrives at 10ps"));
  v1::WindowReport unsorted = Report(0);
  unsorted.add_waits_for(1);
  unsorted.add_waits_for(0);
  EXPECT_THAT(message(unsorted), HasSubstr("out of order"));
  EXPECT_THAT(message(Reaches(50'000, 124'999)),
              HasSubstr("process 0 reports that it reaches others at 124.999ns; not before a "
                        "crossing of 75ns after its next event at 50ns"));
  v1::WindowReport uneven = Sent(0, 1, 1, 100'000);
  uneven.add_batches(2);
  EXPECT_THAT(message(uneven),
              HasSubstr("1 peers, 2 batches, 1 that are carried, 1 arrivals and 1 credits"));
}

}  // namespace
}  // namespace percs
