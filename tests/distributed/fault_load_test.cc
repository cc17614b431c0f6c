// Many commands and many watchers at once. Method: a journalled controller and four daemons of a
// supernode in this process, carrying traffic; threads create and delete faults as fast as they are
// answered, a hundred clients follow the events, and one of them does not read.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <thread>

#include "fmt/format.h"
#include "proto/scenario/journal_file.h"
#include "tests/distributed/cluster.h"

namespace percs::test {
namespace {

constexpr int kClients = 32, kFaultsOfEach = 40;  // 2,560 operations
constexpr int kWatchers = 99;

// One follower of the events, and what it saw.
struct Follower {
  std::atomic<std::uint64_t> last{0};  // number of the last event
  std::atomic<bool> ended{false};
  std::uint64_t events = 0, lost = 0;
  bool in_order = true;
  std::vector<std::string> commands;  // "fault_selected c0-0"
  grpc::Status status;
  grpc::ClientContext context;

  void Follow(v1::Control::Stub& control) {
    v1::WatchEventsRequest request;
    request.set_follow(true);
    const auto stream = control.WatchEvents(&context, request);
    for (v1::EventBatch batch; stream->Read(&batch);) {
      lost += batch.lost();
      for (const v1::FabricEvent& event : batch.events()) {
        in_order = in_order && event.sequence() == last + 1;
        if (event.kind() == "fault_selected" || event.kind() == "fault_deleted") {
          commands.push_back(event.kind() + " " + event.subject());
        }
        last = event.sequence();
        ++events;
      }
    }
    status = stream->Finish();
    ended = true;
  }
};

class FaultLoad : public ::testing::Test {
 protected:
  FaultLoad()
      : folder_(std::filesystem::temp_directory_path() /
                ("percs-load-" + std::to_string(getpid()))) {
    std::filesystem::remove_all(folder_);
    ClusterOptions options;
    options.daemons = 4;
    options.state_dir = folder_;
    cluster_.emplace(options);
  }
  ~FaultLoad() override {
    cluster_.reset();
    std::filesystem::remove_all(folder_);
  }
  grpc::Status Create(const std::string& id, const std::string& link) {
    v1::CreateFaultRequest request;
    request.mutable_fault()->set_id(id);
    request.mutable_fault()->mutable_inject()->set_kind(v1::FAULT_KIND_LINK_DOWN);
    request.mutable_fault()->mutable_inject()->mutable_select()->set_link(link);
    v1::FaultReply reply;
    return cluster_->Call(&v1::Control::Stub::CreateFault, request, &reply);
  }
  std::uint64_t LastEvent() {
    grpc::ClientContext context;
    const auto stream = cluster_->control().WatchEvents(&context, v1::WatchEventsRequest());
    std::uint64_t last = 0;
    for (v1::EventBatch batch; stream->Read(&batch);) {
      for (const v1::FabricEvent& event : batch.events()) last = event.sequence();
    }
    EXPECT_TRUE(stream->Finish().ok());
    return last;
  }
  std::vector<std::string> Journalled() {
    std::vector<std::string> commands;
    const auto journal = ReadJournal(folder_);
    EXPECT_TRUE(journal.ok()) << journal.status();
    if (!journal.ok()) return commands;
    Time at = 0;
    for (const v1::JournalRecord& record : journal->records) {
      EXPECT_GE(record.at(), at);
      at = record.at();
      if (record.has_create_fault())
        commands.push_back("fault_selected " + record.create_fault().id());
      if (record.event_case() == v1::JournalRecord::kDeleteFault)
        commands.push_back("fault_deleted " + record.delete_fault());
    }
    return commands;
  }

  std::string folder_;
  std::optional<Cluster> cluster_;
};

TEST_F(FaultLoad, EveryOperationIsTakenInTheOrderOfTheJournalAndASleepingWatcherIsCutOffAlone) {
  ASSERT_TRUE(cluster_->Apply(Traffic(4, 8, /*load=*/0.002)).ok());
  std::vector<Follower> followers(kWatchers);
  std::vector<std::thread> watchers;
  for (Follower& follower : followers) {
    watchers.emplace_back([&] { follower.Follow(cluster_->control()); });
  }
  // The sleeper has a connection for itself, and little room on it: a flow-control window that
  // grows with use could hold all there is.
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 16 * 1024);
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  const auto channel = grpc::CreateCustomChannel(cluster_->controller_address(),
                                                 grpc::InsecureChannelCredentials(), arguments);
  const auto sleeper = v1::Control::NewStub(channel);
  grpc::ClientContext asleep;
  v1::WatchEventsRequest watch;
  watch.set_follow(true);
  const auto unread = sleeper->WatchEvents(&asleep, watch);

  // Every client has links of its own, so that what it does is always possible.
  std::atomic<int> refused{0};
  const auto from = std::chrono::steady_clock::now();
  std::vector<std::thread> clients;
  for (int c = 0; c < kClients; ++c) {
    clients.emplace_back([&, c] {
      const std::string link = fmt::format("sn0-d{}-h{}:LR{}", c / 8, c % 8, c % 24);
      v1::FaultReply reply;
      for (int i = 0; i < kFaultsOfEach; ++i) {
        v1::DeleteFaultRequest request;
        request.set_id(fmt::format("c{}-{}", c, i));
        refused += !Create(request.id(), link).ok();
        refused += !cluster_->Call(&v1::Control::Stub::DeleteFault, request, &reply).ok();
      }
    });
  }
  for (std::thread& client : clients) client.join();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - from;
  constexpr int kOperations = 2 * kClients * kFaultsOfEach;
  fmt::print("{} operations in {:.2f} s: {:.0f} per second\n", kOperations, took.count(),
             kOperations / took.count());
  RecordProperty("operations_per_second", static_cast<int>(kOperations / took.count()));
  EXPECT_EQ(refused, 0);

  v1::StopReply stopped;
  ASSERT_TRUE(cluster_->Call(&v1::Control::Stub::Stop, v1::StopRequest(), &stopped).ok());
  const auto result = cluster_->WaitForResult();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->result().violations_size(), 0);
  const std::uint64_t all = LastEvent();
  EXPECT_GT(all, 3u * kOperations / 2);
  for (Follower& follower : followers) {
    while (follower.last < all && !follower.ended) WaitABit();
    EXPECT_FALSE(follower.ended) << "not cut off";
    follower.context.TryCancel();
  }
  for (std::thread& watcher : watchers) watcher.join();
  for (const Follower& follower : followers) {
    EXPECT_EQ(follower.events, all);
    EXPECT_EQ(follower.lost, 0u);
    EXPECT_TRUE(follower.in_order);
    EXPECT_EQ(follower.status.error_code(), grpc::StatusCode::CANCELLED);
  }
  std::uint64_t seen = 0, last = 0;
  for (v1::EventBatch batch; unread->Read(&batch);) {
    seen += static_cast<std::uint64_t>(batch.events_size());
    if (batch.events_size() > 0) last = batch.events(batch.events_size() - 1).sequence();
  }
  EXPECT_LT(seen, all) << "what it was sent before it was cut off";
  const grpc::Status cut = unread->Finish();
  EXPECT_EQ(cut.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(cut.error_message(),
              ::testing::HasSubstr(fmt::format("watch again after number {} ", last)));
  fmt::print("{} events; the sleeper got {} of them, then: {} {}\n", all, seen,
             static_cast<int>(cut.error_code()), cut.error_message());

  const std::vector<std::string> journalled = Journalled();
  EXPECT_EQ(journalled.size(), static_cast<std::size_t>(kOperations))
      << "all of them, in order of time";
  for (const Follower& follower : followers)
    EXPECT_EQ(follower.commands, journalled) << "what took effect, in that order";
}

TEST_F(FaultLoad, TheOperationsOfOneWindowAreAppliedInOrderAndAnsweredByOneReplan) {
  ASSERT_TRUE(cluster_->Apply(Traffic(4, 8, /*load=*/0.002)).ok());
  v1::PauseReply paused;
  ASSERT_TRUE(cluster_->Call(&v1::Control::Stub::Pause, v1::PauseRequest(), &paused).ok());
  while (cluster_->Status().state() != v1::FABRIC_STATE_PAUSED) WaitABit();
  constexpr int kFaults = 64;
  std::vector<std::string> expected;
  for (int i = 0; i < kFaults; ++i) {
    ASSERT_TRUE(Create(fmt::format("f{}", i), fmt::format("sn0-d0-h{}:LR{}", i % 8, i % 24)).ok())
        << i;
    expected.push_back(fmt::format("fault_selected f{}", i));
  }
  EXPECT_EQ(Journalled(), expected) << "durable when answered";
  ASSERT_TRUE(cluster_->Call(&v1::Control::Stub::Resume, v1::ResumeRequest(), &paused).ok());
  v1::HealthReply health;
  do {
    WaitABit();
    ASSERT_TRUE(
        cluster_->Call(&v1::Control::Stub::GetHealth, v1::GetHealthRequest(), &health).ok());
  } while (health.reroutes_count() == 0);
  grpc::ClientContext context;
  const auto stream = cluster_->control().WatchEvents(&context, v1::WatchEventsRequest());
  std::vector<std::string> selected;
  int reroutes = 0;
  for (v1::EventBatch batch; stream->Read(&batch);) {
    for (const v1::FabricEvent& event : batch.events()) {
      if (event.kind() == "fault_selected")
        selected.push_back(event.kind() + " " + event.subject());
      reroutes += event.kind() == "reroute";
    }
  }
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_EQ(selected, expected);
  EXPECT_EQ(reroutes, 1);
  v1::StopReply stopped;
  ASSERT_TRUE(cluster_->Call(&v1::Control::Stub::Stop, v1::StopRequest(), &stopped).ok());
  ASSERT_TRUE(cluster_->WaitForResult().ok());
}

}  // namespace
}  // namespace percs::test
