// Many watchers of events while faults come and go as fast as one client can ask for them. Method: one watcher never
// reads; it is cut off when events it has not got are kept no longer, and the others get every event.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "emulator/fault/event_log.h"
#include "tests/distributed/cluster.h"

namespace percs::test {
namespace {

constexpr int kWatchers = 100;

// Follows events from the start, and counts them.
class Watcher {
 public:
  Watcher(v1::Control::Stub& control, std::uint64_t until) {
    v1::WatchEventsRequest request;
    request.set_follow(true);
    stream_ = control.WatchEvents(&context_, request);
    thread_ = std::thread([this, until] {
      v1::EventBatch batch;
      while (last_ < until && stream_->Read(&batch)) {
        in_order_ = in_order_ && batch.lost() == 0 && batch.events(0).sequence() == last_ + 1;
        last_ = batch.events(batch.events_size() - 1).sequence();
      }
      context_.TryCancel();
      while (stream_->Read(&batch)) {
      }
      stream_->Finish();
    });
  }
  ~Watcher() { thread_.join(); }
  bool Finished() { return thread_.join(), thread_ = std::thread([] {}), in_order_; }
  std::uint64_t last() const { return last_; }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<v1::EventBatch>> stream_;
  std::atomic<std::uint64_t> last_{0};
  bool in_order_ = true;
  std::thread thread_;
};

TEST(EventWatch, OneThatDoesNotReadIsCutOffAndTheOthersDoNotNotice) {
  Cluster cluster{ClusterOptions{}};
  v1::ApplyRequest request;
  request.mutable_scenario()->mutable_topology()->set_drawers(1);
  request.mutable_scenario()->mutable_topology()->set_hubs(4);
  request.mutable_scenario()->set_reroute(false);  // faults and alerts alone are events
  request.set_hold(true);
  ASSERT_TRUE(cluster.Apply(request).ok());

  grpc::ClientContext asleep;
  v1::WatchEventsRequest follow;
  follow.set_follow(true);
  const auto unread = cluster.control().WatchEvents(&asleep, follow);

  // Suppressed alerts touch no packet and raise none: four events each.
  constexpr int kFaults = 3000;
  constexpr std::uint64_t kEvents = 4ull * kFaults;
  std::vector<std::unique_ptr<Watcher>> watchers;
  for (int i = 1; i < kWatchers; ++i) watchers.push_back(std::make_unique<Watcher>(cluster.control(), kEvents));
  const auto began = std::chrono::steady_clock::now();
  for (int i = 0; i < kFaults; ++i) {
    v1::CreateFaultRequest create;
    create.mutable_fault()->set_id("f" + std::to_string(i));
    create.mutable_fault()->mutable_inject()->set_kind(v1::FAULT_KIND_ALERT_SUPPRESSED);
    create.mutable_fault()->mutable_inject()->set_mode(v1::FAULT_MODE_ONE);
    v1::DeleteFaultRequest gone;
    gone.set_id(create.fault().id());
    v1::FaultReply reply;
    grpc::ClientContext first, second;
    ASSERT_TRUE(cluster.control().CreateFault(&first, create, &reply).ok());
    ASSERT_TRUE(cluster.control().DeleteFault(&second, gone, &reply).ok());
  }
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - began;
  for (const auto& watcher : watchers) EXPECT_TRUE(watcher->Finished());
  for (const auto& watcher : watchers) EXPECT_EQ(watcher->last(), kEvents);
  RecordProperty("fault_operations_per_second", static_cast<int>(2 * kFaults / wall.count()));

  v1::EventBatch batch;
  while (unread->Read(&batch)) {
  }
  const grpc::Status status = unread->Finish();
  EXPECT_NE(status.error_code(), grpc::StatusCode::OK) << "cut off";
  v1::StopReply stopped;
  grpc::ClientContext context;
  ASSERT_TRUE(cluster.control().Stop(&context, v1::StopRequest(), &stopped).ok());
  ASSERT_TRUE(cluster.WaitForResult().ok());
}

}  // namespace
}  // namespace percs::test
