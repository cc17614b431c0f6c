// When a daemon counts as missing and as lost. Method: a clock that the test moves, looks every
// 100 ms as in the controller, and places that the test sets.
#include "daemon/controller/members/loss_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace percs {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class LossWatchTest : public ::testing::Test, protected LossWatch::Port {
 protected:
  LossWatch::Place See(std::uint32_t place) const override { return places_[place]; }
  void Ask(std::uint32_t place) override { asked_.push_back(place); }
  void Lose(std::uint32_t place, const std::string& why) override {
    lost_.push_back(place);
    why_ = why;
    places_[place] = {};
  }
  // Looks for so long as the controller does.
  void Pass(milliseconds time) {
    for (const auto end = now_ + time; now_ < end;) {
      now_ += LossWatch::kLookEvery;
      watch_.Look(now_, rules_);
    }
  }
  void SetUp() override { watch_.Look(now_, rules_); }

  static constexpr LossWatch::Place kThere{true, true, false, false};
  static constexpr LossWatch::Place kAwaited{true, true, false, true};
  static constexpr LossWatch::Place kAway{true, false, false, true};

  LossWatch::Clock::time_point now_{};
  std::vector<LossWatch::Place> places_{kThere, kThere};
  LossWatch::Rules rules_{true, seconds(10), seconds(10)};
  std::vector<std::uint32_t> asked_, lost_;
  std::string why_;
  LossWatch watch_{2, this};
};

TEST_F(LossWatchTest, OneThatIsAwaitedAndDoesNotAnswerIsAskedOnceAndLostAfterTheDeadline) {
  places_[1] = kAwaited;
  Pass(milliseconds(9'900));
  EXPECT_THAT(asked_, ElementsAre(1));
  EXPECT_THAT(lost_, IsEmpty());
  Pass(milliseconds(300));
  EXPECT_THAT(lost_, ElementsAre(1));
  EXPECT_THAT(why_, HasSubstr("it has not answered for 10.0 s"));
}

TEST_F(LossWatchTest, OneThatAnswersIsNotLostHoweverLongItTakes) {
  places_[1] = kAwaited;
  for (int i = 0; i < 100; ++i) {
    Pass(seconds(1));
    watch_.Heard(1);
  }
  EXPECT_THAT(lost_, IsEmpty());
  EXPECT_EQ(asked_.size(), 100u) << "after each answer it is asked again";
}

TEST_F(LossWatchTest, AFullDiskOfTheControllerIsNobodysSilence) {
  places_ = {kAwaited, kAway};
  Pass(seconds(5));
  rules_.can_decide = false;
  Pass(std::chrono::hours(1));
  EXPECT_THAT(lost_, IsEmpty());
  rules_.can_decide = true;
  Pass(milliseconds(4'500));
  EXPECT_THAT(lost_, IsEmpty()) << "5 s before and 4.5 s after it are 9.5 s";
  Pass(seconds(1));
  EXPECT_THAT(lost_, ElementsAre(0, 1));
}

TEST_F(LossWatchTest, NothingIsAskedOrDecidedWhileNothingCanBeKept) {
  rules_.can_decide = false;
  places_ = {kAwaited, {true, false, /*gone=*/true, false}};
  Pass(seconds(20));
  EXPECT_THAT(asked_, IsEmpty());
  EXPECT_THAT(lost_, IsEmpty());
  rules_.can_decide = true;
  Pass(milliseconds(200));
  EXPECT_THAT(asked_, ElementsAre(0));
  EXPECT_THAT(lost_, ElementsAre(1));
  EXPECT_EQ(why_, "its process has exited");
}

TEST_F(LossWatchTest, APauseOfTheControllerCountsAsOneLook) {
  places_[1] = kAwaited;
  Pass(seconds(9));
  now_ += std::chrono::hours(1);
  watch_.Look(now_, rules_);
  EXPECT_THAT(lost_, IsEmpty());
  // A busy one, whose looks are always late, loses somebody all the same.
  for (int i = 0; i < 10; ++i) watch_.Look(now_ += seconds(1), rules_);
  EXPECT_THAT(lost_, ElementsAre(1));
}

TEST_F(LossWatchTest, WhatArrivedDuringAPauseOfTheControllerIsHeardBeforeItDecides) {
  places_ = {kAwaited, kAway};
  Pass(seconds(10));  // one look before the deadline: the first saw the silence begin
  EXPECT_THAT(lost_, IsEmpty());
  now_ += seconds(6);
  watch_.Look(now_, rules_);
  EXPECT_THAT(lost_, IsEmpty());
  watch_.Heard(0);
  places_[0] = kThere;
  places_[1] = kAwaited;
  Pass(seconds(1));
  EXPECT_THAT(lost_, IsEmpty());
}

TEST_F(LossWatchTest, AfterAPauseOneMayConnectForAsLongAsThePauseWas) {
  const std::pair<milliseconds, milliseconds> cases[] = {{milliseconds(600), milliseconds(600)},
                                                         {seconds(6), LossWatch::kToConnect}};
  for (const auto& [pause, left] : cases) {
    SCOPED_TRACE(pause.count());
    lost_.clear();
    places_[1] = kAway;
    Pass(seconds(10));  // one look before the deadline: the first saw the silence begin
    watch_.Look(now_ += pause, rules_);
    ASSERT_TRUE(watch_.Missing(1));
    EXPECT_EQ(watch_.Missing(1)->left, left);
    Pass(left - LossWatch::kLookEvery);
    EXPECT_THAT(lost_, IsEmpty());
    Pass(LossWatch::kLookEvery);
    EXPECT_THAT(lost_, ElementsAre(1));
    Pass(seconds(1));
  }
}

TEST_F(LossWatchTest, AProcessThatHasEndedIsLostSoonAfterAPauseAndSoIsOneThatDoesNotAnswer) {
  places_ = {kAwaited, kAway};
  Pass(seconds(10));
  places_[1].gone = true;
  watch_.Look(now_ += seconds(6), rules_);
  EXPECT_THAT(lost_, IsEmpty());
  Pass(LossWatch::kLookEvery);
  EXPECT_THAT(lost_, ElementsAre(0, 1));
}

TEST_F(LossWatchTest, TimeToConnectDoesNotPassOnAFullDiskAndOneWhoseLooksAreAllLateDecides) {
  places_[1] = kAway;
  Pass(seconds(10));
  watch_.Look(now_ += seconds(6), rules_);
  rules_.can_decide = false;
  Pass(seconds(5));
  rules_.can_decide = true;
  Pass(milliseconds(1'900));
  EXPECT_THAT(lost_, IsEmpty());
  for (int i = 0; i < 30; ++i) watch_.Look(now_ += seconds(1), rules_);
  EXPECT_THAT(lost_, ElementsAre(1));
}

TEST_F(LossWatchTest, WithoutADeadlineOneIsMissingAndNeverLost) {
  rules_.without_answer = rules_.without_connection = std::nullopt;
  places_ = {kAwaited, kAway};
  Pass(milliseconds(1'900));
  EXPECT_FALSE(watch_.Missing(0)) << "a short while is not worth a word";
  Pass(std::chrono::minutes(10));
  EXPECT_THAT(lost_, IsEmpty());
  ASSERT_TRUE(watch_.Missing(0) && watch_.Missing(1));
  EXPECT_EQ(DescribeSilence(*watch_.Missing(0)),
            "has not answered for 601.8 s; without --loss-deadline it is awaited without limit");
  EXPECT_THAT(DescribeSilence(*watch_.Missing(1)), HasSubstr("has had no connection for 601.8 s"));
}

TEST_F(LossWatchTest, AMissingOneSaysWhenItIsLostUntilItIsBack) {
  places_[1] = kAway;
  Pass(milliseconds(4'100));
  ASSERT_TRUE(watch_.Missing(1));
  EXPECT_EQ(DescribeSilence(*watch_.Missing(1)),
            "has had no connection for 4.0 s; it is lost in 6.0 s");
  places_[1] = kAwaited;
  Pass(milliseconds(100));
  EXPECT_FALSE(watch_.Missing(1));
}

TEST_F(LossWatchTest, OneThatHasNotAnsweredStaysMissingWhenNobodyWaitsAnyMore) {
  rules_.without_answer = std::nullopt;
  places_[1] = kAwaited;
  Pass(seconds(3));
  places_[1] = kThere;
  Pass(seconds(3));
  EXPECT_TRUE(watch_.Missing(1));
  watch_.Heard(1);
  Pass(seconds(3));
  EXPECT_FALSE(watch_.Missing(1));
}

TEST_F(LossWatchTest, ADeadlineIsForThoseWhoAreAwaitedOrAway) {
  places_ = {kAwaited, kThere};
  Pass(seconds(1));
  places_[0] = kThere;  // asked, but a run that is over needs it no more
  Pass(seconds(30));
  EXPECT_THAT(lost_, IsEmpty());
}

}  // namespace
}  // namespace percs
