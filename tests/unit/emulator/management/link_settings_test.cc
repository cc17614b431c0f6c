// What a file or a command sets for a link: faults without an end, of which the last one of a place
// holds.
#include "emulator/scenario/link_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "emulator/management/fault_service.h"
#include "tests/support/fault_runs.h"

namespace percs {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using Kind = FaultAction::Kind;

class LinkSettingsTest : public testing::Test {
 protected:
  LinkSettingsTest()
      : topology_(*Topology::Create({2, 2, 2, 2})),
        far_(topology_.Peer(0, 0)),
        service_(topology_, parameters_, 1, 0, 55 * kNanosecond, nullptr) {}

  std::uint32_t Set(const FaultSpec& spec) {
    const auto status = service_.Create(spec, 0);
    EXPECT_TRUE(status.ok()) << status.status();
    return status.ok() ? status->number : 0;
  }
  std::vector<FaultAction> ActionsUpTo(Time end) {
    std::vector<FaultAction> actions;
    service_.Run(end, &actions);
    return actions;
  }
  FaultPhase PhaseOf(const std::string& id) const { return service_.Get(id)->phase; }

  P7ihParameters parameters_;
  Topology topology_;
  const LinkEnd end_{0, 0}, far_;
  FaultService service_;
};

TEST_F(LinkSettingsTest, GetANameAndStayUntilTheyAreEnded) {
  const std::uint32_t cut = Set(SetLinkDown(kUs, far_));
  ASSERT_EQ(service_.List().size(), 1u);
  EXPECT_EQ(service_.List()[0].spec.id, "link_down-1");
  auto actions = ActionsUpTo(2 * kUs);
  ASSERT_EQ(actions.size(), 1u);
  EXPECT_TRUE(actions[0].begins);
  EXPECT_EQ(actions[0].end, end_) << "by the lower end, however it was named";
  EXPECT_EQ(actions[0].replaces, 0u);
  EXPECT_EQ(service_.unfinished(), 0);

  Set(SetLinkUp(5 * kUs, end_));
  EXPECT_EQ(service_.List().size(), 1u) << "what mends is not listed";
  actions = ActionsUpTo(6 * kUs);
  ASSERT_EQ(actions.size(), 2u);
  EXPECT_FALSE(actions[0].begins);
  EXPECT_EQ(actions[0].fault, cut);
  EXPECT_EQ(actions[1].kind, Kind::kRetrain);
  EXPECT_EQ(PhaseOf("link_down-1"), FaultPhase::kRecovered);
  EXPECT_EQ(service_.Get("link_down-1")->recovered_at, 5 * kUs);
}

TEST_F(LinkSettingsTest, ALaterOneReplacesTheOneBeforeAtOneStroke) {
  const std::uint32_t few = Set(SetLanesLost(kUs, end_, 1));
  const std::uint32_t more = Set(SetLanesLost(2 * kUs, end_, 2));
  const auto actions = ActionsUpTo(3 * kUs);
  ASSERT_EQ(actions.size(), 2u) << "no end between them";
  EXPECT_EQ(actions[0].fault, few);
  EXPECT_EQ(actions[1].fault, more);
  EXPECT_EQ(actions[1].replaces, few);
  EXPECT_EQ(PhaseOf("lane_loss-1"), FaultPhase::kRecovered);
  EXPECT_EQ(PhaseOf("lane_loss-2"), FaultPhase::kActive);
}

TEST_F(LinkSettingsTest, DirectionsAndKindsAreDifferentPlaces) {
  FaultSpec both = SetErrorRate(kUs, end_, 0.5);
  both.direction = FaultDirection::kBoth;
  const std::uint32_t first = Set(both);
  Set(SetErrorRate(2 * kUs, far_, 0.25));
  Set(SetLatency(2 * kUs, end_, kNanosecond));
  ASSERT_EQ(ActionsUpTo(3 * kUs).size(), 4u);
  EXPECT_EQ(PhaseOf("bit_errors-1"), FaultPhase::kActive) << "it still has the other direction";
  Set(SetErrorRate(4 * kUs, end_, 0));
  const auto actions = ActionsUpTo(5 * kUs);
  ASSERT_EQ(actions.size(), 2u);
  EXPECT_EQ(actions[0].fault, first);
  EXPECT_EQ(actions[0].end, end_);
  EXPECT_EQ(actions[1].kind, Kind::kRetrain);
  EXPECT_EQ(PhaseOf("bit_errors-1"), FaultPhase::kRecovered);
  EXPECT_EQ(service_.unfinished(), 1) << "its replays may still take the link down";
  const auto again = ActionsUpTo(kSecond);
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].kind, Kind::kRetrain);
}

TEST_F(LinkSettingsTest, AreDeletedLikeAnyFaultAndGiveTheirPlaceBack) {
  FaultSpec named = SetLinkDown(kUs, end_);
  named.id = "cut";
  Set(named);
  ActionsUpTo(2 * kUs);
  ASSERT_TRUE(service_.Delete("cut", 3 * kUs).ok());
  auto actions = ActionsUpTo(4 * kUs);
  ASSERT_EQ(actions.size(), 1u);
  EXPECT_FALSE(actions[0].begins);
  EXPECT_THAT(service_.List(), IsEmpty());
  Set(SetLinkDown(5 * kUs, end_));
  actions = ActionsUpTo(6 * kUs);
  ASSERT_EQ(actions.size(), 1u);
  EXPECT_EQ(actions[0].replaces, 0u);
}

TEST_F(LinkSettingsTest, AnUpdateThatMendsLeavesNoFault) {
  FaultSpec noisy = SetErrorRate(kUs, end_, 0.5);
  noisy.id = "noisy";
  for (const bool acts : {false, true}) {
    SCOPED_TRACE(acts ? "while it acts" : "before it begins");
    noisy.at = *noisy.at + 10 * kUs;
    Set(noisy);
    if (acts) ActionsUpTo(*noisy.at + kUs);
    FaultSpec calm = SetErrorRate(*noisy.at + 2 * kUs, end_, 0);
    calm.id = "noisy";
    ASSERT_TRUE(service_.Update(calm, *noisy.at + kUs).ok());
    EXPECT_EQ(service_.Get("noisy").status().code(), absl::StatusCode::kNotFound);
    ActionsUpTo(*noisy.at + 3 * kUs);
    EXPECT_THAT(service_.List(), IsEmpty());
    EXPECT_EQ(service_.Reset(*noisy.at + 4 * kUs), 0u);
  }
}

TEST_F(LinkSettingsTest, NothingIsEndedWhereNothingWasSet) {
  FaultSpec other = SetErrorRate(kUs, end_, 0.5);
  other.id = "other";
  other.sets = FaultSets::kNo;
  Set(other);
  ActionsUpTo(2 * kUs);
  Set(SetErrorRate(3 * kUs, end_, 0));
  Set(SetLanesLost(3 * kUs, end_, 0));
  EXPECT_THAT(ActionsUpTo(kSecond), IsEmpty());
  EXPECT_EQ(PhaseOf("other"), FaultPhase::kActive);
}

TEST_F(LinkSettingsTest, WhatCannotBeSetIsRefused) {
  FaultSpec flap = SetLinkDown(0, end_);
  flap.period = kUs;
  const absl::Status status = service_.Create(flap, 0).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("has no duration and no period"));
  EXPECT_FALSE(service_.Create(SetLanesLost(0, end_, 65), 0).ok());
  EXPECT_FALSE(service_.Create(SetErrorRate(0, end_, 1.5), 0).ok());
  EXPECT_FALSE(service_.Create(SetLatency(0, end_, kLatencyMax + 1), 0).ok());
}

// A link that is brought up and down again at one instant by different faults never comes up.
TEST(LinkSettings, AChangeOfTheSettingDoesNotLetTheLinkUp) {
  Scenario s;
  s.topology = {1, 1, 2, 1};
  s.reroute = false;
  s.faults = {SetLanesLost(kUs, {0, 0}, 64), SetLanesLost(2 * kUs, {0, 0}, 63),
              SetLanesLost(3 * kUs, {0, 0}, 0)};
  const auto result = RunScenario(s, {});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->total.alerts_raised, 4u) << "both ends, down and up";
  EXPECT_THAT(result->faults, ElementsAre(testing::Field(&FaultStatus::recoveries, 1u),
                                          testing::Field(&FaultStatus::recoveries, 1u)));
}

}  // namespace
}  // namespace percs
