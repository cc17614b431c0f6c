// The workload once more on a fabric that had every kind of fault, over daemons; and streams that
// break on request.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/distributed/cluster.h"

namespace percs::test {
namespace {

using ::testing::HasSubstr;

class RepeatTest : public ::testing::Test {
 protected:
  void WaitUntilIdle() {
    while (cluster_.Status().state() != v1::FABRIC_STATE_IDLE) WaitABit();
  }
  v1::RunResult StopAndWait() {
    v1::StopReply reply;
    EXPECT_TRUE(cluster_.Call(&v1::Control::Stub::Stop, v1::StopRequest(), &reply).ok());
    const auto result = cluster_.WaitForResult();
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? result->result() : v1::RunResult();
  }
  // The result of a workload that was run again on the fabric of the example with every kind of
  // fault.
  v1::RunResult Repeated(const v1::ApplyRequest& request, bool reset) {
    EXPECT_TRUE(cluster_.Apply(request).ok());
    WaitUntilIdle();
    if (reset) {
      v1::ResetArbitersReply reply;
      EXPECT_TRUE(
          cluster_.Call(&v1::Control::Stub::ResetArbiters, v1::ResetArbitersRequest(), &reply)
              .ok());
      WaitUntilIdle();
    }
    v1::RepeatWorkloadReply again;
    const grpc::Status status =
        cluster_.Call(&v1::Control::Stub::RepeatWorkload, v1::RepeatWorkloadRequest(), &again);
    EXPECT_TRUE(status.ok()) << status.error_message();
    WaitUntilIdle();
    v1::RunResult result = StopAndWait();
    EXPECT_EQ(result.workload_started(), again.at());
    EXPECT_EQ(result.violations_size(), 0);
    return result;
  }
  Cluster cluster_{ClusterOptions{.daemons = 3}};
};

TEST_F(RepeatTest, AfterFaultsOfEveryKindAndAResetItIsThatOfAFreshFabric) {
  v1::ApplyRequest broken = RequestFromFile("deploy/scenarios/every-fault.yaml");
  broken.set_hold(true);
  v1::AllToAll* work = broken.mutable_scenario()->mutable_workload()->mutable_all_to_all();
  work->set_bytes(64 * 1024);
  work->set_payload(v1::PAYLOAD_LENGTHS);  // content tells the number of its message, which goes on
  broken.mutable_scenario()->clear_clock();  // it goes on while the fabric is idle
  auto* faults = broken.mutable_scenario()->mutable_faults();
  faults->erase(std::remove_if(faults->begin(), faults->end(),
                               [](const v1::Fault& f) { return f.id() == "drift"; }),
                faults->end());
  v1::ApplyRequest fresh = broken;
  fresh.set_hold(false);
  fresh.mutable_scenario()->clear_faults();
  fresh.mutable_scenario()->clear_service();
  const auto first = cluster_.Run(fresh);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->result().workload_started(), 0);
  const v1::RunResult reset = Repeated(broken, true), left = Repeated(broken, false);
  EXPECT_EQ(reset.workload_digest(), first->result().workload_digest());
  EXPECT_NE(reset.digest(), first->result().digest());
  EXPECT_NE(left.workload_digest(), first->result().workload_digest())
      << "what decides by turns stands elsewhere";
}

TEST_F(RepeatTest, OnlyWhatIsIdleAndCanBeginLaterIsRepeated) {
  v1::RepeatWorkloadReply again;
  ASSERT_TRUE(cluster_.Apply(Traffic(1, 4)).ok());
  grpc::Status status =
      cluster_.Call(&v1::Control::Stub::RepeatWorkload, v1::RepeatWorkloadRequest(), &again);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_message(),
              HasSubstr("only in a held run (applied with hold) that is idle"));
  StopAndWait();
  v1::ApplyRequest trees = RequestFromFile("deploy/scenarios/cau-tree.yaml");
  trees.set_hold(true);
  ASSERT_TRUE(cluster_.Apply(trees).ok());
  WaitUntilIdle();
  status = cluster_.Call(&v1::Control::Stub::RepeatWorkload, v1::RepeatWorkloadRequest(), &again);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED) << status.error_message();
  StopAndWait();
}

TEST_F(RepeatTest, StreamsThatBreakOnRequestComeBackAndChangeNoResult) {
  v1::ApplyRequest request = Traffic(1, 6);
  request.set_hold(false);
  request.mutable_scenario()->mutable_workload()->mutable_all_to_all()->set_bytes(256 * 1024);
  ASSERT_TRUE(cluster_.Apply(request).ok());
  v1::BreakStreamsRequest streams;
  v1::BreakStreamsReply broken;
  for (int i = 0; i < 9; ++i) {
    streams.set_process("percsd-" + std::to_string(i % 3));
    const grpc::Status status = cluster_.Call(&v1::Control::Stub::BreakStreams, streams, &broken);
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(broken.place(), static_cast<std::uint32_t>(i % 3));
  }
  const auto result = cluster_.WaitForResult();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->result().digest(), RunHere(request.scenario()).digest.ToString());
  std::uint64_t reconnects = 0;
  const v1::StatusReply status = cluster_.Status();
  for (const v1::ProcessStatus& process : status.processes()) reconnects += process.reconnects();
  EXPECT_GT(reconnects, 3u);
  streams.set_process("nobody");
  const grpc::Status none = cluster_.Call(&v1::Control::Stub::BreakStreams, streams, &broken);
  EXPECT_EQ(none.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(none.error_message(), HasSubstr("daemons: percsd-0, percsd-1, percsd-2"));
}

}  // namespace
}  // namespace percs::test
