// Faults as resources: names, times, repetition, selection, and what each of them tells to happen
// when.
#include "emulator/management/fault_service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/fault_runs.h"

namespace percs {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr Time kWindow = 55 * kNanosecond;  // the lookahead of the default machine

class FaultServiceTest : public testing::Test {
 protected:
  FaultServiceTest()
      : topology_(*Topology::Create({2, 2, 2, 2})),
        service_(topology_, parameters_, 1, 0, kWindow, &log_) {}

  static FaultSpec Down(const std::string& id, LinkEnd link) {
    FaultSpec spec;
    spec.id = id;
    spec.select.link = link;
    return spec;
  }
  std::vector<Time> TimesUpTo(Time end) {
    std::vector<FaultAction> actions;
    service_.Run(end, &actions);
    std::vector<Time> times;
    for (const FaultAction& action : actions)
      times.push_back(action.begins ? action.at : -action.at);
    return times;
  }
  absl::Status CreateError(const FaultSpec& spec) {
    return service_.Create(spec, 10 * kUs).status();
  }

  P7ihParameters parameters_;
  Topology topology_;
  EventLog log_;
  FaultService service_;
};

TEST_F(FaultServiceTest, AFaultStaysUntilItIsDeleted) {
  ASSERT_TRUE(service_.Create(Down("cut", {0, 0}), 5 * kUs).ok());
  EXPECT_EQ(service_.unfinished(), 1);
  EXPECT_THAT(TimesUpTo(100 * kUs), ElementsAre(5 * kUs));
  EXPECT_EQ(service_.next_time(), kNever);
  EXPECT_EQ(service_.unfinished(), 0) << "a run does not wait for what lasts for ever";
  EXPECT_EQ(service_.Get("cut")->phase, FaultPhase::kActive);
  ASSERT_TRUE(service_.Delete("cut", 200 * kUs).ok());
  EXPECT_THAT(TimesUpTo(300 * kUs), ElementsAre(-200 * kUs));
  EXPECT_THAT(service_.List(), IsEmpty());
  const absl::Status again = service_.Delete("cut", 300 * kUs);
  EXPECT_EQ(again.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(again.message()),
              HasSubstr("no fault \"cut\" exists, or it is already deleted; faults: none"));
}

// The scenario's own are checked before it begins (check_scenario_test).
TEST_F(FaultServiceTest, AFaultThatWouldLookLikeADeadlockIsRefusedWhileTheFabricRuns) {
  FaultSpec slow = Down("slow", {0, 0});
  slow.kind = FaultKind::kLatency;
  slow.latency = parameters_.stall_limit / 4;
  ASSERT_TRUE(service_.Create(slow, 0).ok());
  FaultSpec second = slow;
  second.id = "second";
  const absl::Status refused = CreateError(second);
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr("with fault second (latency): stall_limit ="),
                    HasSubstr("would be reported as a deadlock")));
  slow.latency = parameters_.stall_limit / 2;
  EXPECT_FALSE(service_.Update(slow, 10 * kUs).ok()) << "nor may one become so";
  slow.latency = parameters_.stall_limit / 3;
  EXPECT_TRUE(service_.Update(slow, 10 * kUs).ok()) << "it replaces itself";
}

TEST_F(FaultServiceTest, ADurationEndsIt) {
  FaultSpec spec = Down("cut", {0, 0});
  spec.at = 3 * kUs;
  spec.duration = 4 * kUs;
  ASSERT_TRUE(service_.Create(spec, 0).ok());
  EXPECT_THAT(TimesUpTo(100 * kUs), ElementsAre(3 * kUs, -7 * kUs));
  const FaultStatus status = *service_.Get("cut");
  EXPECT_EQ(status.phase, FaultPhase::kRecovered);
  EXPECT_EQ(status.injections, 1u);
  EXPECT_EQ(status.recovered_at, 7 * kUs);
}

TEST_F(FaultServiceTest, AFlapHasADutyCycleAndANumberOfTimes) {
  FaultSpec spec = Down("flap", {0, 0});
  spec.kind = FaultKind::kFlap;
  spec.at = kUs;
  spec.period = 10 * kUs;
  spec.duty = 0.3;
  spec.repeats = 3;
  ASSERT_TRUE(service_.Create(spec, 0).ok());
  EXPECT_THAT(TimesUpTo(kSecond),
              ElementsAre(kUs, -4 * kUs, 11 * kUs, -14 * kUs, 21 * kUs, -24 * kUs));
  EXPECT_EQ(service_.Get("flap")->injections, 3u);
}

TEST_F(FaultServiceTest, ADurationCutsARepetitionShort) {
  FaultSpec spec = Down("flap", {0, 0});
  spec.period = 10 * kUs;
  spec.duration = 12 * kUs;
  ASSERT_TRUE(service_.Create(spec, 0).ok());
  EXPECT_THAT(TimesUpTo(kSecond), ElementsAre(0, -5 * kUs, 10 * kUs, -12 * kUs));
}

TEST_F(FaultServiceTest, EndlessRepetitionEndsWhenAFabricIsToDrain) {
  FaultSpec spec = Down("flap", {0, 0});
  spec.period = 10 * kUs;
  ASSERT_TRUE(service_.Create(spec, 0).ok());
  ASSERT_TRUE(service_.Create(Down("stays", {0, kLrFirst}), 0).ok());
  TimesUpTo(12 * kUs);
  service_.EndRepeating(12 * kUs);
  EXPECT_THAT(TimesUpTo(kSecond), ElementsAre(-12 * kUs));
  EXPECT_EQ(service_.List().size(), 1u);
}

TEST_F(FaultServiceTest, TheSameFaultTwiceIsOneAndAnotherOfItsNameIsRefused) {
  ASSERT_TRUE(service_.Create(Down("cut", {0, 0}), 0).ok());
  const auto again = service_.Create(Down("cut", {0, 0}), 5 * kUs);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->number, 1u);
  const absl::Status other = CreateError(Down("cut", {0, kLrFirst}));
  EXPECT_EQ(other.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(TimesUpTo(kSecond), ElementsAre(0));
}

TEST_F(FaultServiceTest, AnUpdateEndsWhatWasAndBeginsWhatShallBe) {
  ASSERT_TRUE(service_.Create(Down("cut", {0, 0}), 0).ok());
  TimesUpTo(kUs);
  ASSERT_TRUE(service_.Update(Down("cut", {0, kLrFirst}), 4 * kUs).ok());
  std::vector<FaultAction> actions;
  service_.Run(kSecond, &actions);
  ASSERT_EQ(actions.size(), 2u);
  EXPECT_FALSE(actions[0].begins);
  EXPECT_EQ(actions[0].end, (LinkEnd{0, 0}));
  EXPECT_TRUE(actions[1].begins);
  EXPECT_EQ(actions[1].end, (LinkEnd{0, kLrFirst}));
  EXPECT_EQ(service_.List().size(), 1u);
  EXPECT_EQ(service_.Update(Down("none", {0, kLrFirst}), 4 * kUs).status().code(),
            absl::StatusCode::kNotFound);
}

TEST_F(FaultServiceTest, ResetEndsAll) {
  FaultSpec later = Down("later", {0, kLrFirst});
  later.at = kSecond;
  ASSERT_TRUE(service_.Create(Down("cut", {0, 0}), 0).ok());
  ASSERT_TRUE(service_.Create(later, 0).ok());
  TimesUpTo(kUs);
  EXPECT_EQ(service_.Reset(2 * kUs), 2u);
  EXPECT_THAT(TimesUpTo(2 * kSecond), ElementsAre(-2 * kUs));
  EXPECT_EQ(service_.unfinished(), 0);
}

TEST_F(FaultServiceTest, AfterErrorsALinkThatWasGivenUpIsRetrainedOnceNoReplayCanGiveItUp) {
  FaultSpec spec = Down("dark", {0, 0});
  spec.kind = FaultKind::kPortDown;
  spec.direction = FaultDirection::kBackward;
  spec.duration = 5 * kUs;
  ASSERT_TRUE(service_.Create(spec, 0).ok());
  std::vector<FaultAction> actions;
  service_.Run(kSecond, &actions);
  ASSERT_EQ(actions.size(), 4u);
  EXPECT_EQ(actions[0].kind, FaultAction::Kind::kErrorRate);
  EXPECT_EQ(actions[0].end, topology_.Peer(0, 0));
  EXPECT_EQ(actions[1].kind, FaultAction::Kind::kErrorRate);
  EXPECT_EQ(actions[2].kind, FaultAction::Kind::kRetrain);
  EXPECT_EQ(actions[2].at, 5 * kUs);
  EXPECT_EQ(actions[3].kind, FaultAction::Kind::kRetrain);
  const Time round =
      2 * parameters_.d.wire + 2 * 16'000 + parameters_.credit_processing;  // of the longest links
  EXPECT_EQ(actions[3].at, 5 * kUs + parameters_.replay_limit * round + 1);
}

TEST_F(FaultServiceTest, SelectorsNameClassesDrawersPairsAndCuts) {
  const auto count = [&](const FaultSpec& spec) {
    return SelectTargets(spec, topology_, 1)->size();
  };
  FaultSpec spec;
  spec.id = "f";
  EXPECT_EQ(count(spec), topology_.Links().size());
  spec.select.link_class = LinkClass::kD;
  EXPECT_EQ(count(spec), 2u);
  spec.select.link_class = LinkClass::kLr;
  spec.select.in = {0, 1};  // a drawer
  EXPECT_EQ(count(spec), 4u);
  spec.select.to = {2};
  EXPECT_EQ(count(spec), 2u);
  spec.select = {};
  spec.select.in = {0, 1, 2, 3};
  spec.kind = FaultKind::kPartition;  // of two supernodes
  EXPECT_EQ(count(spec), 2u);
  spec.select.in = {5};
  spec.kind = FaultKind::kHubDown;
  EXPECT_EQ(count(spec), 1u);
  EXPECT_EQ(ActionsOf(spec, *SelectTargets(spec, topology_, 1), topology_).size(), 4u)
      << "its links";
}

TEST_F(FaultServiceTest, DrawsFollowFromTheSeedThatIsTold) {
  FaultSpec spec;
  spec.id = "some";
  spec.mode = FaultMode::kFixed;
  spec.count = 3;
  const auto first = service_.Create(spec, 0);
  ASSERT_TRUE(first.ok());
  ASSERT_EQ(first->targets.links.size(), 3u);
  spec.seed = first->seed;
  EXPECT_EQ(*SelectTargets(spec, topology_, FaultSeed(spec, 99)), first->targets);
  int different = 0;
  for (std::uint64_t seed = 0; seed < 10; ++seed)
    different += *SelectTargets(spec, topology_, seed) != first->targets;
  EXPECT_GT(different, 5);
  spec.mode = FaultMode::kPercent;
  spec.percent = 50;
  EXPECT_EQ(SelectTargets(spec, topology_, 1)->links.size(), topology_.Links().size() / 2);
}

TEST_F(FaultServiceTest, WhatCannotBeIsRefused) {
  const auto text = [&](const FaultSpec& spec) { return std::string(CreateError(spec).message()); };
  FaultSpec past = Down("f", {0, 0});
  past.at = kUs;
  EXPECT_THAT(text(past),
              HasSubstr("fault f (link_down): at 1us is in the past: virtual time is 10us"));
  EXPECT_THAT(text(Down("f", {0, 40})), HasSubstr("its link does not exist"));
  FaultSpec nothing;
  nothing.id = "f";
  nothing.select.link_class = LinkClass::kLl;
  nothing.select.in = {0};
  nothing.select.to = {7};
  EXPECT_EQ(CreateError(nothing).code(), absl::StatusCode::kNotFound);
  FaultSpec flap = Down("f", {0, 0});
  flap.kind = FaultKind::kFlap;
  EXPECT_THAT(text(flap), HasSubstr("a flap needs a period"));
  FaultSpec dark = Down("f", {0, 0});
  dark.kind = FaultKind::kPortDown;
  EXPECT_THAT(text(dark), HasSubstr("port_down needs a direction"));
  FaultSpec lanes = Down("f", {0, 0});
  lanes.lanes = 3;
  EXPECT_THAT(text(lanes), HasSubstr("lanes belongs to other kinds"));
  lanes.kind = FaultKind::kBitErrors;
  EXPECT_THAT(text(lanes), HasSubstr("lanes belongs to other kinds"));
  FaultSpec many = Down("f", {0, 0});
  many.mode = FaultMode::kFixed;
  many.count = 2;
  EXPECT_THAT(text(many), HasSubstr("2 places requested, but its selector matches 1"));
  FaultSpec hub = Down("f", {0, 0});
  hub.kind = FaultKind::kHubDown;
  EXPECT_THAT(text(hub), HasSubstr("select them by `in` only"));
  EXPECT_THAT(service_.List(), IsEmpty());
}

TEST_F(FaultServiceTest, TheLogSaysWhatHappenedAndHowMuchIsGone) {
  FaultSpec spec = Down("cut", {0, 0});
  spec.duration = kUs;
  ASSERT_TRUE(service_.Create(spec, 0).ok());
  TimesUpTo(kSecond);
  std::uint64_t lost = 1;
  std::vector<std::string> kinds;
  for (const FabricEvent& event : log_.After(0, 100, &lost)) kinds.push_back(event.kind);
  EXPECT_THAT(kinds, ElementsAre("fault_selected", "fault_injected", "fault_recovered"));
  EXPECT_EQ(lost, 0u);
  for (std::size_t i = 0; i < EventLog::kKept; ++i) log_.Add(0, "noise", "", "");
  const auto rest = log_.After(1, 2, &lost);
  EXPECT_EQ(lost, 2u);
  ASSERT_EQ(rest.size(), 2u);
  EXPECT_EQ(rest[0].sequence, 4u);
}

}  // namespace
}  // namespace percs
