// When the page's feed asks the fabric, and that it asks nothing while no page is open.
#include "daemon/page/fabric_feed.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>

namespace percs {
namespace {

// More than the feed's interval.
constexpr std::chrono::milliseconds kLong(600);

class CountingControl : public v1::Control::Service {
 public:
  grpc::Status Status(grpc::ServerContext*, const v1::StatusRequest*,
                      v1::StatusReply* reply) override {
    ++calls;
    reply->set_run(1);
    reply->set_state(v1::FABRIC_STATE_RUNNING);
    reply->set_virtual_time(calls);  // it passes, so there is something to look at
    return grpc::Status::OK;
  }
  grpc::Status WatchEvents(grpc::ServerContext*, const v1::WatchEventsRequest*,
                           grpc::ServerWriter<v1::EventBatch>*) override {
    ++calls;
    return grpc::Status::OK;
  }

  std::atomic<int> calls = 0;
};

TEST(FabricFeedTest, AsksTheFabricOnlyWhileAPageIsOpen) {
  CountingControl control;
  grpc::ServerBuilder builder;
  builder.RegisterService(&control);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  std::atomic<int> looks = 0;
  std::promise<void> looked_twice;
  FabricFeed feed(server->InProcessChannel({}), [&](const SightDone& done) {
    if (++looks == 2) looked_twice.set_value();
    done(absl::UnavailableError("nothing to be seen"));
  });
  std::this_thread::sleep_for(kLong);
  EXPECT_EQ(0, control.calls + looks);

  const auto reader = std::make_shared<FeedReader>(
      std::make_shared<const std::string>(""), [] {}, [] {});
  ASSERT_TRUE(feed.Add(reader).ok());
  ASSERT_EQ(std::future_status::ready, looked_twice.get_future().wait_for(std::chrono::minutes(1)));
  EXPECT_GT(control.calls, 0);

  feed.Remove(reader.get());
  int calls = -1, rounds = 0;
  while (calls != control.calls + looks && ++rounds < 20) {  // the round that was under way ends
    calls = control.calls + looks;
    std::this_thread::sleep_for(kLong);
  }
  EXPECT_EQ(calls, control.calls + looks);
  feed.Stop();
  server->Shutdown();
}

}  // namespace
}  // namespace percs
