// What one caller may ask of a controller and of daemons, and what is counted of it. Method: a
// fabric in this process, called by plain gRPC clients until it refuses; then every method there
// is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "daemon/stream/call_meter.h"
#include "daemon/stream/rate_limit.h"
#include "daemon/stream/server_settings.h"
#include "proto/security/channel.h"
#include "proto/security/roles.h"
#include "tests/distributed/cluster.h"
#include "tests/distributed/generic_call.h"

namespace percs::test {
namespace {

using ::testing::HasSubstr;

constexpr char kStatus[] = "/percs.v1.Control/Status";
constexpr int kShortMs = 500;

std::shared_ptr<grpc::Channel> ChannelTo(const std::string& address) {
  return MakeChannel(address, {}, Role::kController);
}

// Until the bucket is empty; none of what it asks for may go wrong otherwise.
void Exhaust(const std::shared_ptr<grpc::Channel>& channel) {
  for (int i = 0; i < 1000; ++i) {
    std::string reply;
    const grpc::Status status = GenericCall(channel, kStatus, "", &reply);
    if (status.error_code() == grpc::RESOURCE_EXHAUSTED) return;
    ASSERT_TRUE(status.ok()) << status.error_message();
  }
  FAIL() << "a thousand requests were answered";
}

class TwoDaemons : public ::testing::Test {
 protected:
  Cluster cluster_{ClusterOptions{}};
};

TEST(Limits, WhoAsksTooOftenIsRefusedByEveryMethod) {
  ClusterOptions options;
  options.daemons = 1;
  options.requests_per_second = 0.01;
  Cluster cluster(options);
  const auto channel = ChannelTo(cluster.controller_address());
  Exhaust(channel);
  const std::uint64_t before = ExcessCount(Excess::kRate);
  std::uint64_t refused = 0;
  for (const MethodRoles& entry : AllMethodRoles()) {
    const std::string method = entry.method;
    const bool ours = method.rfind("/percs.v1.Control/", 0) == 0,
               joins = method.rfind("/percs.v1.Sync/", 0) == 0;
    if (!ours && !joins) continue;
    std::string reply;
    const grpc::Status status = GenericCall(channel, method, "", &reply);
    // Daemons try again.
    EXPECT_EQ(status.error_code(), ours ? grpc::RESOURCE_EXHAUSTED : grpc::UNAVAILABLE) << method;
    EXPECT_THAT(status.error_message(), HasSubstr("makes more than 0.01 requests per second"))
        << method;
    ++refused;
  }
  EXPECT_GE(ExcessCount(Excess::kRate), before + refused);
  std::string reply;
  EXPECT_TRUE(GenericCall(channel, "/grpc.health.v1.Health/Check", "", &reply).ok())
      << "health is never refused";
}

TEST(Limits, ADaemonRefusesStreamsOfWhoOpensTooMany) {
  ClusterOptions options;
  options.daemons = 1;
  options.requests_per_second = 0.01;
  Cluster cluster(options);
  const auto channel = ChannelTo(cluster.daemon_address(0));
  grpc::Status status;
  for (int i = 0; i < 1000 && status.error_code() != grpc::RESOURCE_EXHAUSTED; ++i) {
    std::string reply;
    status = GenericCall(channel, kExchangePath, "", &reply, kShortMs);
  }
  EXPECT_EQ(status.error_code(), grpc::RESOURCE_EXHAUSTED) << status.error_message();
}

TEST_F(TwoDaemons, AConnectionHasSoManyCallsAndTheNextWaits) {
  ASSERT_TRUE(cluster_.WaitUntilJoined());
  const auto watcher = v1::Control::NewStub(ChannelTo(cluster_.controller_address()));
  v1::WatchEventsRequest request;
  request.set_follow(true);
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
  std::vector<std::unique_ptr<grpc::ClientReader<v1::EventBatch>>> watches;
  for (int i = 0; i < kStreamsPerConnection; ++i) {
    contexts.push_back(std::make_unique<grpc::ClientContext>());
    watches.push_back(watcher->WatchEvents(contexts.back().get(), request));
  }
  const auto ask = [&](int milliseconds) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() +
                         std::chrono::milliseconds(milliseconds));
    v1::StatusReply reply;
    return watcher->Status(&context, {}, &reply).error_code();
  };
  EXPECT_EQ(ask(kShortMs), grpc::DEADLINE_EXCEEDED);
  EXPECT_EQ(cluster_.Status().daemons_expected(), 2u) << "another connection is answered";
  contexts.front()->TryCancel();
  EXPECT_EQ(watches.front()->Finish().error_code(), grpc::CANCELLED);
  EXPECT_EQ(ask(20'000), grpc::OK);
  for (const auto& context : contexts) context->TryCancel();
}

std::uint64_t Ended(const std::string& path, grpc::StatusCode code) {
  return CallsOf(path).handled[static_cast<std::size_t>(code)];
}

// Its end is counted a little after the answer has come.
void ExpectEnded(const std::string& path, grpc::StatusCode code, std::uint64_t times) {
  for (int i = 0; i < 1000 && Ended(path, code) < times; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(Ended(path, code), times)
      << path << " with " << kGrpcCodeNames[static_cast<std::size_t>(code)];
}

TEST_F(TwoDaemons, CallsAreCountedByMethodAndByHowTheyEnded) {
  const MethodCalls &session = CallsOf(kSessionPath), &exchange = CallsOf(kExchangePath);
  const MethodCalls& watch = CallsOf("/percs.v1.Control/WatchRun");
  const std::string apply = "/percs.v1.Control/Apply";
  const std::uint64_t applied = Ended(apply, grpc::StatusCode::OK), watched = watch.sent;
  const std::uint64_t reports = session.received, grants = session.sent,
                      batches = exchange.received;
  const auto run = cluster_.Run(RequestFromFile("deploy/scenarios/two-hubs.yaml"));
  ASSERT_TRUE(run.ok()) << run.status();
  ExpectEnded(apply, grpc::StatusCode::OK, applied + 1);
  EXPECT_GT(watch.sent, watched);
  // A window has a grant and a report at least; before and after, each daemon is asked and answers.
  const std::uint64_t windows = run->result().windows();
  EXPECT_GE(session.received, reports + windows + 4) << windows;
  EXPECT_GE(session.sent, grants + windows + 4) << windows;
  EXPECT_GT(exchange.received, batches);
  EXPECT_EQ(session.type, CallType::kBidiStream);
  EXPECT_EQ(watch.type, CallType::kServerStream);

  const auto channel = ChannelTo(cluster_.controller_address());
  std::string reply;
  for (const char* nobodys : {"/percs.v1.Control/Nothing", "/a.b/C", "/x"}) {
    const std::uint64_t before = Ended(nobodys, grpc::StatusCode::UNIMPLEMENTED);
    EXPECT_EQ(GenericCall(channel, nobodys, "", &reply).error_code(),
              grpc::StatusCode::UNIMPLEMENTED)
        << nobodys;
    ExpectEnded(nobodys, grpc::StatusCode::UNIMPLEMENTED, before + 1);
    EXPECT_EQ(&CallsOf(nobodys), &CallsOf("unknown"));
  }
  const std::string stop = "/percs.v1.Control/Stop";  // of a run that has ended
  const std::uint64_t before = Ended(stop, grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(GenericCall(channel, stop, "", &reply).error_code(),
            grpc::StatusCode::FAILED_PRECONDITION);
  ExpectEnded(stop, grpc::StatusCode::FAILED_PRECONDITION, before + 1);
}

}  // namespace
}  // namespace percs::test
