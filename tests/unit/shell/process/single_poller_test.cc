#include "proto/process/single_poller.h"

#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>

#include "grpcpp/create_channel.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/security/credentials.h"
#include "gtest/gtest.h"

namespace percs {
namespace {

// Threads that report calls, all of which are under way at the same time if there are threads.
std::set<std::thread::id> ReportingThreads(int calls) {
  struct Call {
    grpc::ClientContext context;
    grpc::Slice nothing;
    grpc::ByteBuffer request{&nothing, 1}, reply;
  };
  const auto channel = grpc::CreateChannel("", nullptr);
  std::vector<Call> started(static_cast<std::size_t>(calls));
  std::mutex mutex;
  std::condition_variable changed;
  std::set<std::thread::id> threads;
  int reported = 0;
  for (Call& call : started) {
    grpc::GenericStub(channel).UnaryCall(
        &call.context, "/none", {}, &call.request, &call.reply, [&](const grpc::Status& status) {
          EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
          std::this_thread::sleep_for(
              std::chrono::milliseconds(1));  // for another to take the next
          const std::lock_guard lock(mutex);
          threads.insert(std::this_thread::get_id());
          ++reported;
          changed.notify_all();
        });
  }
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return reported == calls; });
  return threads;
}

TEST(SinglePollerTest, OneThreadReportsCallsUntilItIsDestroyed) {
  constexpr int kCalls = 50;
  EXPECT_GT(ReportingThreads(kCalls).size(), 1u);
  {
    const SinglePoller poller;
    EXPECT_GE(poller.held(), 1);
    EXPECT_EQ(ReportingThreads(kCalls).size(), 1u);
  }
  EXPECT_GT(ReportingThreads(kCalls).size(), 1u);
}

}  // namespace
}  // namespace percs
