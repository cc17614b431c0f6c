// Method: runs many rounds on pools of several sizes and checks that every index ran exactly once,
// before Run() returned and on the thread it belongs to.
#include "client/lib/executor.h"

#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <thread>

namespace percs {
namespace {

TEST(ThreadPoolTest, RunsEveryIndexExactlyOncePerRoundBeforeItReturns) {
  for (int threads : {1, 2, 3, 5}) {
    ThreadPool pool(threads);
    for (int count : {0, 1, 2, 7, 64}) {
      std::vector<int> seen(64, 0);  // unsynchronised on purpose: Run() has to order the accesses
      for (int round = 0; round < 200; ++round) {
        pool.Run(count, [&](int i) { ++seen[i]; });
        for (int i = 0; i < 64; ++i) ASSERT_EQ(seen[i], i < count ? round + 1 : 0);
      }
    }
  }
}

TEST(ThreadPoolTest, KeepsAnIndexOnItsThread) {
  ThreadPool pool(3);
  std::mutex mutex;
  std::map<int, std::thread::id> thread_of;
  const Executor executor = pool.executor();
  for (int round = 0; round < 50; ++round) {
    executor(6, [&](int i) {
      std::lock_guard lock(mutex);
      const auto [it, inserted] = thread_of.emplace(i, std::this_thread::get_id());
      EXPECT_EQ(it->second, std::this_thread::get_id()) << i;
    });
  }
  EXPECT_EQ(thread_of[0], std::this_thread::get_id());
  EXPECT_EQ(thread_of[0], thread_of[3]);
  EXPECT_EQ(thread_of[2], thread_of[5]);
}

TEST(ThreadPoolTest, WakesThreadsThatFellAsleep) {
  ThreadPool pool(2);
  for (int round = 0; round < 3; ++round) {
    std::atomic<int> ran{0};
    pool.Run(2, [&](int) { ++ran; });
    EXPECT_EQ(ran, 2);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

}  // namespace
}  // namespace percs
