// Processes that are not what they should be, or not there at all. Method: each case is brought
// about for real, the whole message is looked at, and a good run follows where there is still a
// fabric.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "fmt/format.h"
#include "percs/v1/link.grpc.pb.h"
#include "percs/v1/sync.grpc.pb.h"
#include "proto/process/version.h"
#include "proto/security/channel.h"
#include "tests/distributed/cluster.h"

namespace percs::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

grpc::Status Join(const std::string& controller, const v1::JoinRequest& request) {
  const auto stub = v1::Sync::NewStub(MakeChannel(controller, {}, Role::kController));
  grpc::ClientContext context;
  v1::JoinReply reply;
  return stub->Join(&context, request, &reply);
}

v1::JoinRequest GoodJoin() {
  v1::JoinRequest request;
  *request.mutable_versions() = OurVersions();
  request.set_name("stranger");
  request.set_pid(4242);
  request.set_link_address("unix:/nowhere");
  request.set_incarnation(77);
  return request;
}

TEST(FailureTest, ADaemonOfAnotherWireVersionIsRefused) {
  Cluster cluster{ClusterOptions{}};
  v1::JoinRequest request = GoodJoin();
  request.mutable_versions()->set_wire(99);
  const grpc::Status status = Join(cluster.controller_address(), request);
  EXPECT_EQ(status.error_code(), grpc::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_message(),
              AllOf(HasSubstr("stranger (pid 4242) has wire version 99"),
                    HasSubstr(fmt::format("this process has {}", kWireVersion))));
  EXPECT_TRUE(cluster.Run(RequestFromFile("deploy/scenarios/two-hubs.yaml")).ok());
}

TEST(FailureTest, ADaemonOfAnotherModelVersionIsRefused) {
  Cluster cluster{ClusterOptions{}};
  v1::JoinRequest request = GoodJoin();
  request.mutable_versions()->set_model(kModelVersion + 1);
  EXPECT_THAT(Join(cluster.controller_address(), request).error_message(),
              HasSubstr(fmt::format("model version {}", kModelVersion + 1)));
}

TEST(FailureTest, ATakenPlaceAndOneTooManyAreRefused) {
  Cluster cluster{ClusterOptions{}};
  ASSERT_TRUE(cluster.WaitUntilJoined());
  v1::JoinRequest request = GoodJoin();
  EXPECT_THAT(Join(cluster.controller_address(), request).error_message(),
              HasSubstr("all 2 places of this fabric are taken"));
  request.set_place(1);
  EXPECT_THAT(Join(cluster.controller_address(), request).error_message(),
              HasSubstr(fmt::format("place 1 is taken by percsd-1 in place 1 (pid {})", getpid())));
  request.set_place(2);
  EXPECT_THAT(Join(cluster.controller_address(), request).error_message(),
              HasSubstr("this fabric has places 0 to 1"));
}

TEST(FailureTest, WhoeverListensAtTheAddressOfOneThatHasGoneTakesItsPlace) {
  ClusterOptions options;
  options.daemons = 1;
  options.tcp = true;  // where nobody sees that a process is gone
  options.lost_after = std::chrono::seconds(60);
  Cluster cluster(options);
  ASSERT_TRUE(cluster.WaitUntilJoined());
  v1::JoinRequest request = GoodJoin();
  request.set_link_address(cluster.Status().processes(0).link_address());
  EXPECT_FALSE(Join(cluster.controller_address(), request).ok()) << "it is there";
  cluster.KillDaemon(0);
  while (cluster.Status().processes_size() > 0 && cluster.Status().processes(0).connected())
    WaitABit();
  EXPECT_TRUE(Join(cluster.controller_address(), request).ok());
  EXPECT_EQ(cluster.Status().processes(0).name(), "stranger");
}

TEST(FailureTest, ALinkStreamOfAStrangerIsRefusedAsMiswired) {
  Cluster cluster{ClusterOptions{}};
  ASSERT_TRUE(cluster.Run(RequestFromFile("deploy/scenarios/two-hubs.yaml")).ok());
  const auto stub = v1::Link::NewStub(
      MakeChannel(cluster.Status().processes(1).link_address(), {}, Role::kDaemon));
  grpc::ClientContext context;
  const auto stream = stub->Exchange(&context);
  v1::LinkMessage hello;
  *hello.mutable_hello()->mutable_versions() = OurVersions();
  hello.mutable_hello()->set_fabric(123);
  hello.mutable_hello()->set_run(1);
  hello.mutable_hello()->set_process(0);
  hello.mutable_hello()->set_peer(1);
  stream->Write(hello);
  v1::LinkMessage answer;
  EXPECT_FALSE(stream->Read(&answer));
  const grpc::Status status = stream->Finish();
  EXPECT_EQ(status.error_code(), grpc::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_message(),
              AllOf(HasSubstr("miswired"), HasSubstr("expected fabric"), HasSubstr("got 123")));
  EXPECT_TRUE(cluster.Run(RequestFromFile("deploy/scenarios/two-hubs.yaml")).ok());
}

TEST(FailureTest, GarbageOnALinkStreamEndsTheStreamNotTheProcess) {
  Cluster cluster{ClusterOptions{}};
  ASSERT_TRUE(cluster.WaitUntilJoined());
  const auto stub = v1::Link::NewStub(
      MakeChannel(cluster.Status().processes(0).link_address(), {}, Role::kDaemon));
  grpc::ClientContext context;
  const auto stream = stub->Exchange(&context);
  v1::LinkMessage garbage;
  garbage.set_sequence(5);
  garbage.set_batch("garbage");
  stream->Write(garbage);
  v1::LinkMessage answer;
  EXPECT_FALSE(stream->Read(&answer));
  EXPECT_THAT(stream->Finish().error_message(), HasSubstr("must be a hello"));
  EXPECT_TRUE(cluster.Run(RequestFromFile("deploy/scenarios/two-hubs.yaml")).ok());
}

TEST(FailureTest, ATakenPortIsReportedWithThePidOfItsHolder) {
  ControllerOptions options;
  options.listen = "127.0.0.1:0";
  const auto first = StartController(options);
  ASSERT_TRUE(first.ok()) << first.status();
  options.listen = (*first)->address();
  const auto second = StartController(options);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(second.status().message()),
              AllOf(HasSubstr(options.listen), HasSubstr("is taken by"),
                    HasSubstr(fmt::format("(pid {})", getpid()))));
}

TEST(FailureTest, ATakenSocketIsReportedWithThePidOfItsHolder) {
  auto folder = percs::TemporaryFolder::MakeForSockets("percs-");
  ControllerOptions options;
  options.listen = fmt::format("unix:{}/controller", folder->path());
  {
    const auto first = StartController(options);
    ASSERT_TRUE(first.ok()) << first.status();
    const auto second = StartController(options);
    EXPECT_EQ(second.status().code(), absl::StatusCode::kAlreadyExists);
    EXPECT_THAT(std::string(second.status().message()),
                AllOf(HasSubstr(options.listen), HasSubstr(fmt::format("(pid {})", getpid()))));
  }
  EXPECT_TRUE(StartController(options).ok()) << "a socket left behind must not be in the way";
}

TEST(FailureTest, AddressesThatCannotBeAreRefusedWithWhatWouldBeRight) {
  for (const char* listen : {"nowhere", "host:", "host:99999", "unix:", ":17"}) {
    ControllerOptions options;
    options.listen = listen;
    const auto controller = StartController(options);
    EXPECT_EQ(controller.status().code(), absl::StatusCode::kInvalidArgument) << listen;
    EXPECT_THAT(std::string(controller.status().message()), HasSubstr(listen));
  }
}

TEST(FailureTest, ADaemonWithoutAControllerEndsWithAMessage) {
  DaemonOptions options;
  options.controller = "unix:/nowhere/controller";
  options.controller_timeout = std::chrono::milliseconds(300);
  auto daemon = Daemon::Start(options);
  ASSERT_TRUE(daemon.ok());
  const absl::Status outcome = (*daemon)->Wait();
  EXPECT_EQ(outcome.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(outcome.message()),
              AllOf(HasSubstr("controller at unix:/nowhere/controller"),
                    HasSubstr("is percs-controller running there?")));
}

TEST(FailureTest, ALostDaemonIsListedAndItsPlaceCanBeTakenAgain) {
  ClusterOptions options;
  options.loss_deadline = std::chrono::seconds(2);
  Cluster cluster(options);
  ASSERT_TRUE(cluster.Apply(Traffic(1, 4)).ok());
  cluster.KillDaemon(1);
  while (cluster.Status().processes_size() > 1) WaitABit();
  grpc::ClientContext context;
  v1::StopReply stopped;
  ASSERT_TRUE(cluster.control().Stop(&context, v1::StopRequest(), &stopped).ok());
  const auto result = cluster.WaitForResult();
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_EQ(result->result().lost_size(), 1);
  EXPECT_THAT(result->result().lost(0).who(), HasSubstr("percsd-1 in place 1"));
  EXPECT_EQ(
      result->result().nodes() + static_cast<std::uint64_t>(result->result().lost(0).nodes_size()),
      4u);
  EXPECT_EQ(cluster.Status().state(), v1::FABRIC_STATE_JOINING);
  ASSERT_TRUE(cluster.AddDaemon().ok());
  EXPECT_TRUE(cluster.Run(RequestFromFile("deploy/scenarios/two-hubs.yaml")).ok());
}

grpc::Status AskLinks(Cluster& cluster) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kPatience);
  v1::ListLinksReply reply;
  return cluster.control().ListLinks(&context, v1::ListLinksRequest(), &reply);
}

TEST(FailureTest, AFailedFabricAnswersAQuestionWithTheReason) {
  ClusterOptions options;
  options.tap = [](std::uint32_t, std::uint32_t, Outbox* outbox) {
    for (CreditRun& run : outbox->credits) run.port = kServicePort;
  };
  Cluster cluster(options);
  const auto result = cluster.Run(RequestFromFile("deploy/scenarios/two-hubs.yaml"));
  EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument) << result.status();
  const grpc::Status answer = AskLinks(cluster);
  EXPECT_EQ(answer.error_code(), grpc::FAILED_PRECONDITION);
  EXPECT_THAT(answer.error_message(),
              AllOf(HasSubstr("run 1 has failed: process"), HasSubstr("credits for port 55")));
}

TEST(FailureTest, ALostDaemonOfAFinishedRunIsTheAnswerToAQuestion) {
  ClusterOptions options;
  options.lost_after = std::chrono::seconds(2);
  Cluster cluster(options);
  ASSERT_TRUE(cluster.Run(RequestFromFile("deploy/scenarios/two-hubs.yaml")).ok());
  EXPECT_TRUE(AskLinks(cluster).ok());
  cluster.KillDaemon(1);
  const grpc::Status answer = AskLinks(cluster);
  EXPECT_EQ(answer.error_code(), grpc::UNAVAILABLE);
  EXPECT_THAT(answer.error_message(), HasSubstr("lost percsd-1 in place 1"));
}

TEST(FailureTest, LinksOverTcpGiveTheSameDigest) {
  ClusterOptions options;
  options.tcp = true;
  Cluster cluster(options);
  const v1::ApplyRequest request = RequestFromFile("deploy/scenarios/two-hubs.yaml");
  const auto result = cluster.Run(request);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->transport(), "tcp");
  EXPECT_EQ(result->result().digest(), RunHere(request.scenario()).digest.ToString());
}

}  // namespace
}  // namespace percs::test
