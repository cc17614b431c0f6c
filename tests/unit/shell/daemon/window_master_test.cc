// Windows by hand. Method: three processes report; the windows, who is granted and what must be in
// before are compared with what rule 5 of docs/semantics.md says.
#include "daemon/controller/run/window_master.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace percs {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr Time kLookahead = 55'000;

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
  return report;
}

TEST(WindowMasterTest, OnlyProcessesWithSomethingToDoAreGranted) {
  WindowMaster master(3, kLookahead);
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
  WindowMaster before(2, kLookahead);
  for (int p = 0; p < 2; ++p) EXPECT_TRUE(before.OnReport(p, Report(0)).ok());
  EXPECT_THAT(before.Open(kLookahead), ElementsAre(0, 1));
  before.Wake(0, kLookahead);
  v1::SavedMaster saved;
  before.Save(&saved);
  WindowMaster master(2, kLookahead);
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
  WindowMaster master(3, kLookahead);
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
  WindowMaster master(2, kLookahead);
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
  WindowMaster master(2, kLookahead);
  EXPECT_TRUE(master.OnReport(0, Report(kNever)).ok());
  EXPECT_TRUE(master.OnReport(1, Report(kNever)).ok());
  EXPECT_EQ(master.next(), kNever);
  master.Wake(1, 5);
  EXPECT_THAT(master.Open(master.next() + kLookahead), ElementsAre(1));
}

TEST(WindowMasterTest, WorkOfProcessesAddsUpToNothing) {
  WindowMaster master(2, kLookahead);
  EXPECT_TRUE(master.OnReport(0, Report(0, 4)).ok());
  EXPECT_TRUE(master.OnReport(1, Report(0, -3)).ok());
  EXPECT_FALSE(master.left().done());
  EXPECT_TRUE(master.OnReport(1, Report(0, -4)).ok());
  EXPECT_TRUE(master.left().done());
}

TEST(WindowMasterTest, OneThatTakesALostPlaceIsCountedFromThenOn) {
  WindowMaster master(2, kLookahead);
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

TEST(WindowMasterTest, ReportsThatCannotBeAreRefused) {
  WindowMaster master(2, kLookahead);
  EXPECT_TRUE(master.OnReport(0, Report(0)).ok());
  EXPECT_TRUE(master.OnReport(1, Report(0)).ok());
  master.Open(kLookahead);
  const auto message = [&](const v1::WindowReport& report) {
    return std::string(master.OnReport(0, report).message());
  };
  EXPECT_THAT(message(Sent(0, 7, 1, 100'000)), HasSubstr("a batch to process 7"));
  EXPECT_THAT(message(Sent(0, 0, 1, 100'000)), HasSubstr("a batch to process 0"));
  EXPECT_THAT(message(Sent(0, 1, 1, 10)), HasSubstr("arrives at 10ps"));
  v1::WindowReport uneven = Sent(0, 1, 1, 100'000);
  uneven.add_batches(2);
  EXPECT_THAT(message(uneven), HasSubstr("1 peers, 2 batches and 1 arrivals"));
}

}  // namespace
}  // namespace percs
