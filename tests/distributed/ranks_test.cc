// What a daemon refuses of a program whose ranks are to use windows of its hubs.
#include <cmath>
#include <functional>
#include <string>

#include "gmock/gmock.h"
#include "percs/v1/ranks.grpc.pb.h"
#include "tests/distributed/endpoint_fixture.h"

namespace percs::test {
namespace {

using ::testing::HasSubstr;

class RanksTest : public EndpointTest {
 protected:
  // Of rank 0 at window 0 of hub 0, and rank 1 likewise of hub 1.
  static v1::BeginRanksRequest Program(std::uint32_t job) {
    v1::BeginRanksRequest request;
    request.set_job(job);
    for (const std::uint32_t hub : {0, 1}) {
      request.add_hubs(hub);
      request.add_windows(0);
    }
    return request;
  }
  grpc::Status Begin(const v1::BeginRanksRequest& request) {
    grpc::ClientContext context;
    v1::BeginRanksReply reply;
    return stub_->BeginRanks(&context, request, &reply);
  }
  grpc::Status Watch(std::uint32_t job) {
    grpc::ClientContext context;
    v1::WatchRanksRequest request;
    request.set_job(job);
    v1::WatchRanksReply reply;
    return stub_->WatchRanks(&context, request, &reply);
  }
  grpc::Status End(std::uint32_t job) {
    grpc::ClientContext context;
    v1::EndRanksRequest request;
    request.set_job(job);
    v1::EndRanksReply reply;
    return stub_->EndRanks(&context, request, &reply);
  }

  std::unique_ptr<v1::Ranks::Stub> stub_ =
      v1::Ranks::NewStub(MakeChannel(cluster_.daemon_address(0), {}, Role::kDaemon));
};

TEST_F(RanksTest, NothingBeginsWithoutAScenario) {
  ASSERT_TRUE(cluster_.WaitUntilJoined());
  const grpc::Status status = Begin(Program(1));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(status.error_message(), "no scenario is applied");
}

TEST_F(RanksTest, WhatIsOutOfRangeIsRefusedWithWhatWouldBeRight) {
  ASSERT_TRUE(cluster_.WaitUntilJoined());
  ASSERT_TRUE(cluster_.Apply(TwoHubs()).ok());
  struct Case {
    std::function<void(v1::BeginRanksRequest&)> change;
    const char* message;
  };
  const Case cases[] = {
      {[](auto& r) { r.set_job(0); }, "job is 0; write 1 to 65535"},
      {[](auto& r) { r.set_job(65'536); }, "job is 65536; write 1 to 65535"},
      {[](auto& r) { r.add_windows(1); }, "a program of 2 ranks at 3 windows"},
      {[](auto& r) { r.clear_hubs(), r.clear_windows(); }, "a program of 0 ranks at 0 windows"},
      {[](auto& r) { r.set_hubs(1, 2); }, "rank 1 is at window 0 of hub 2 of 2"},
      {[](auto& r) { r.set_windows(1, 65'536); }, "rank 1 is at window 65536 of hub 1 of 2"},
      {[](auto& r) { r.set_hubs(1, 0); }, "rank 1 is at window 0 of sn0-d0-h0, as another one"},
      {[](auto& r) { r.set_compute_scale(-1); }, "compute_scale is -1; write 0 to 1000"},
      {[](auto& r) { r.set_compute_scale(1001); }, "compute_scale is 1001; write 0 to 1000"},
      {[](auto& r) { r.set_compute_scale(std::nan("")); }, "compute_scale is nan; write 0 to 1000"},
  };
  for (const auto& [change, message] : cases) {
    v1::BeginRanksRequest request = Program(1);
    change(request);
    const grpc::Status status = Begin(request);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << message;
    EXPECT_THAT(status.error_message(), HasSubstr(message));
  }
}

TEST_F(RanksTest, AJobIsFoundByItsWholeKey) {
  ASSERT_TRUE(cluster_.WaitUntilJoined());
  ASSERT_TRUE(cluster_.Apply(TwoHubs()).ok());
  ASSERT_TRUE(Begin(Program(1)).ok());
  EXPECT_EQ(Begin(Program(1)).error_code(), grpc::StatusCode::ALREADY_EXISTS);
  EXPECT_EQ(Begin(Program(2)).error_message(), "job 1 has window 0 of sn0-d0-h0");
  EXPECT_TRUE(Watch(1).ok());
  EXPECT_EQ(Watch(65'537).error_message(), "job 65537 has no ranks here");
  EXPECT_EQ(End(65'537).error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_TRUE(End(1).ok());
  EXPECT_EQ(Watch(1).error_message(), "job 1 has no ranks here");
}

}  // namespace
}  // namespace percs::test
