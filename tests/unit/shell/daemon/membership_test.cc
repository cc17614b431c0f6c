// When daemons that join hear their places. Method: joins without a network, and a caller that says
// when what was decided is saved.
#include "daemon/controller/members/membership.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "proto/process/version.h"

namespace percs {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class MembershipTest : public ::testing::Test {
 protected:
  static Membership::Events Ignored() {
    Membership::Events events;
    events.message = [](std::uint32_t, v1::DaemonMessage&) { return absl::OkStatus(); };
    events.reached = [] {};
    events.lost = [](const Member&, const std::string&) {};
    events.changed = [](std::uint32_t) {};
    events.admit = [](const std::string&) { return absl::OkStatus(); };
    return events;
  }
  void Join(std::uint64_t incarnation) {
    v1::JoinRequest request;
    *request.mutable_versions() = OurVersions();
    request.set_name("percsd");
    request.set_link_address("127.0.0.1:" + std::to_string(incarnation));
    request.set_incarnation(incarnation);
    membership_.Join(request, [this](const absl::StatusOr<std::uint32_t>& place) {
      if (place.ok()) {
        told_.push_back(*place);
      } else {
        refused_.push_back(std::string(place.status().message()));
      }
    });
  }

  ProcessLock lock_;
  Membership membership_{&lock_, 2, /*fabric=*/7, Ignored()};
  std::vector<std::uint32_t> told_;
  std::vector<std::string> refused_;
};

TEST_F(MembershipTest, WithoutASavedStateAPlaceIsToldAtOnce) {
  Join(1);
  Join(2);
  Join(3);
  EXPECT_THAT(told_, ElementsAre(0, 1));
  EXPECT_THAT(refused_, ElementsAre(HasSubstr("all 2 places of this fabric are taken")));
}

TEST_F(MembershipTest, APlaceIsToldWhenItIsSavedAndAtOnceFromThenOn) {
  membership_.HoldBack();
  Join(1);
  Join(1);  // it did not hear the answer
  EXPECT_THAT(told_, IsEmpty());
  membership_.Release();
  EXPECT_THAT(told_, ElementsAre(0, 0));
  membership_.Release();
  Join(1);
  EXPECT_THAT(told_, ElementsAre(0, 0, 0)) << "there may be no other Release";
}

TEST_F(MembershipTest, AMemberIsSavedWithWhatAStreamMayHaveTakenOfItsMessages) {
  v1::SavedMember saved;
  *saved.mutable_joined()->mutable_versions() = OurVersions();
  saved.set_sent(1);
  saved.set_left(0);
  saved.add_unacknowledged()->set_sequence(1);
  ASSERT_TRUE(membership_.Restore(7, {{0, saved}}).ok());
  v1::SavedMember again;
  membership_.member(0)->Save(&again);
  EXPECT_EQ(again.SerializeAsString(), saved.SerializeAsString());

  saved.clear_left();  // as earlier controllers saved it
  ASSERT_TRUE(membership_.Restore(7, {{1, saved}}).ok());
  EXPECT_EQ(membership_.member(1)->session().left(), 1u);

  saved.set_left(2);
  EXPECT_EQ(membership_.Restore(7, {{0, saved}}),
            absl::DataLossError("the saved state of the daemon in place 0 is invalid"));
}

TEST_F(MembershipTest, WhoWaitsForAPlaceIsAnsweredWhenItIsLostOrTheControllerLeaves) {
  membership_.HoldBack();
  Join(1);
  Join(2);
  membership_.Lose(0, "a test");
  EXPECT_THAT(refused_, ElementsAre(HasSubstr("declared lost; join again")));
  membership_.HandOver();
  EXPECT_THAT(refused_, ElementsAre(HasSubstr("declared lost"), HasSubstr("try again")));
  membership_.Release();
  EXPECT_THAT(told_, IsEmpty());
}

}  // namespace
}  // namespace percs
