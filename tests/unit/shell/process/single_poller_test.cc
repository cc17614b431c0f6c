#include "proto/process/single_poller.h"

#include <condition_variable>
#include <set>
#include <thread>
#include <vector>

#include "grpcpp/create_channel.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/security/credentials.h"
#include "gtest/gtest.h"
#include "proto/process/mutex.h"

namespace percs {
namespace {

// Of one test at a time. Its mutex is made before there are threads: the thread sanitizer does not
// see how gRPC hands a call to another one.
struct Reports {
  Mutex mutex;
  std::condition_variable_any changed;
  std::set<std::thread::id> threads ABSL_GUARDED_BY(mutex);
  int count ABSL_GUARDED_BY(mutex) = 0;

  void Add(const grpc::Status& status) {
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // for another to take the next
    const MutexLock lock(mutex);
    threads.insert(std::this_thread::get_id());
    ++count;
    changed.notify_all();
  }
};
Reports reports;

// Threads that report that many calls, all under way at the same time.
std::set<std::thread::id> ReportingThreads(int calls) {
  struct Call {
    grpc::ClientContext context;
    grpc::Slice nothing;
    grpc::ByteBuffer request{&nothing, 1}, reply;
  };
  const auto channel = grpc::CreateChannel("", nullptr);
  std::vector<Call> started(static_cast<std::size_t>(calls));
  {
    const MutexLock lock(reports.mutex);
    reports.threads.clear();
    reports.count = 0;
  }
  for (Call& call : started) {
    grpc::GenericStub(channel).UnaryCall(&call.context, "/none", {}, &call.request, &call.reply,
                                         [](const grpc::Status& status) { reports.Add(status); });
  }
  const MutexLock lock(reports.mutex);
  while (reports.count < calls) reports.changed.wait(reports.mutex);
  return reports.threads;
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
