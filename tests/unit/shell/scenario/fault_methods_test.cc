// The fault methods of the Control service on the faults of a small machine, without a controller.
#include "proto/scenario/fault_methods.h"

#include <gmock/gmock.h>

namespace percs {
namespace {

class FaultMethodsTest : public testing::Test {
 protected:
  FaultMethodsTest()
      : topology_(*Topology::Create({1, 1, 2, 1})),
        faults_(topology_, parameters_, 1, 0, 55 * kNanosecond, nullptr) {
    spec_.id = "cut";
    spec_.select.link = LinkEnd{0, 0};
  }

  P7ihParameters parameters_;
  Topology topology_;
  FaultService faults_;
  FaultSpec spec_;
};

TEST_F(FaultMethodsTest, AFaultIsCreatedListedAndDeleted) {
  v1::FaultReply created, deleted;
  ASSERT_TRUE(SetFault(faults_, &FaultService::Create, spec_, topology_, 700, &created).ok());
  EXPECT_EQ(created.at(), 700);
  EXPECT_EQ(created.fault().id(), "cut");
  v1::ListFaultsReply all, one;
  ASSERT_TRUE(ListFaults(faults_, {}, topology_, 800, &all).ok());
  ASSERT_EQ(all.faults_size(), 1);
  EXPECT_EQ(all.virtual_time(), 800);
  v1::ListFaultsRequest request;
  request.set_id("cut");
  ASSERT_TRUE(ListFaults(faults_, request, topology_, 800, &one).ok());
  EXPECT_EQ(one.faults(0).kind(), "link_down");
  ASSERT_TRUE(DeleteFault(faults_, "cut", topology_, 900, &deleted).ok());
  EXPECT_EQ(deleted.at(), 900);
  EXPECT_EQ(deleted.fault().id(), "cut");
}

TEST_F(FaultMethodsTest, WhatIsRefusedFillsNoReply) {
  v1::FaultReply reply;
  EXPECT_EQ(SetFault(faults_, &FaultService::Update, spec_, topology_, 700, &reply).code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(DeleteFault(faults_, "cut", topology_, 700, &reply).code(),
            absl::StatusCode::kNotFound);
  EXPECT_FALSE(reply.has_fault());
  EXPECT_EQ(reply.at(), 0);
  v1::ListFaultsRequest request;
  request.set_id("cut");
  v1::ListFaultsReply list;
  EXPECT_EQ(ListFaults(faults_, request, topology_, 0, &list).code(), absl::StatusCode::kNotFound);
}

TEST_F(FaultMethodsTest, AResetSaysHowManyItDeleted) {
  v1::FaultReply created;
  ASSERT_TRUE(SetFault(faults_, &FaultService::Create, spec_, topology_, 700, &created).ok());
  v1::ResetFaultsReply reply;
  ASSERT_TRUE(ResetFaults(faults_, 800, &reply).ok());
  EXPECT_EQ(reply.deleted(), 1u);
  EXPECT_EQ(reply.at(), 800);
}

}  // namespace
}  // namespace percs
