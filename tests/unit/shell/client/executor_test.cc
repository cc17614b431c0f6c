// Method: runs many rounds on pools of several sizes and checks that every index ran exactly once,
// before Run() returned and on the thread it belongs to. A helper that the machine has taken off
// its core is one that is held before it begins; what that costs is counted, with a clock of the
// test's.
#include "client/lib/executor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <future>
#include <mutex>
#include <thread>

#include "emulator/base/random.h"
#include "tests/support/seed.h"

namespace percs {
namespace {

constexpr std::chrono::seconds kDeadline(60);

// Sharing costs nothing by this clock, so every round is shared.
std::int64_t Standstill() { return 0; }

constexpr auto kNothing = [](int) { return false; };  // in one turn

// Helpers stay where they are until they are let go.
class Held {
 public:
  void Wait() {
    std::unique_lock lock(mutex_);
    ++waiting_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return let_go_; });
  }
  bool AwaitWaiting(int helpers) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kDeadline, [&] { return waiting_ >= helpers; });
  }
  void LetGo() {
    const std::lock_guard lock(mutex_);
    let_go_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int waiting_ = 0;
  bool let_go_ = false;
};

TEST(ThreadPoolTest, RunsEveryIndexExactlyOncePerRoundBeforeItReturns) {
  for (int threads : {1, 2, 3, 5}) {
    for (const auto now : {&Standstill, static_cast<std::int64_t (*)()>(nullptr)}) {
      ThreadPool pool(threads, {.cores = 8, .now = now});
      for (int count : {0, 1, 2, 7, 64}) {
        std::vector<int> seen(64, 0);  // unsynchronised on purpose: Run() has to order the accesses
        for (int round = 0; round < 200; ++round) {
          pool.Run(count, [&](int i) { return ++seen[i] < 0; });
          for (int i = 0; i < 64; ++i) ASSERT_EQ(seen[i], i < count ? round + 1 : 0);
        }
      }
    }
  }
}

// In each turn, what all others wrote in the one before is there, unsynchronised, and nobody is
// further than that. Rounds of few indices leave threads out.
TEST(ThreadPoolTest, ATurnBeginsWhenAllHaveEndedTheOneBefore) {
  for (const int threads : {1, 2, 3, 5}) {
    ThreadPool pool(threads, {.cores = 8, .now = &Standstill});
    constexpr int kCount = 7;
    int wrong = 0, turns = 0;
    for (int round = 1; round <= 1'000; ++round) {
      const int count = 1 + round % kCount, last = 1 + round % 5;
      // By turn, modulo two: a thread may write in its turn while others still read.
      std::array<std::array<int, kCount>, 2> written{};
      std::array<int, kCount> turn{}, good{};
      pool.Run(count, [&](int i) {
        const auto& before = written[(turn[i] + 1) % 2];
        good[i] += std::count(before.begin(), before.begin() + count, turn[i]) == count;
        written[turn[i] % 2][i] = turn[i] + 1;
        return ++turn[i] <= last;
      });
      for (int i = 0; i < count; ++i) wrong += turn[i] != last + 1 || good[i] != last + 1;
      turns += last + 1;
    }
    EXPECT_EQ(wrong, 0) << threads << " threads, " << turns << " turns";
  }
}

TEST(ThreadPoolTest, TheCallerDoesAllTurnsOfAPartThatNobodyHasBegun) {
  Held held;
  ThreadPool pool(2, {.cores = 2, .now = &Standstill, .before_begin = [&](int) { held.Wait(); }});
  std::array<int, 2> turns{};
  auto all = std::async(std::launch::async, [&] {
    for (int round = 0; round < 100; ++round) {
      turns = {};
      pool.Run(2, [&](int i) { return ++turns[i] < 10; });
    }
  });
  const bool in_time = all.wait_for(kDeadline) == std::future_status::ready;
  held.LetGo();
  ASSERT_TRUE(in_time) << "the caller waits for a helper that the machine does not run";
  EXPECT_EQ(turns, (std::array<int, 2>{10, 10}));
  EXPECT_EQ(pool.counts().taken_over, 100);
}

// A thread that falls asleep just when what it waits for happens is woken all the same.
TEST(ThreadPoolTest, NoWakeUpIsLost) {
  ThreadPool pool(2, {.cores = 2, .now = &Standstill, .spins = 0});
  std::atomic<int> begun{0};
  std::array<std::array<std::array<int, 16>, 40>, 2> lines{};
  auto all = std::async(std::launch::async, [&] {
    for (int round = 1; round <= 100'000; ++round) {
      for (int i = 0; i < round % 4'096; ++i) std::atomic_signal_fence(std::memory_order_seq_cst);
      // The caller would do the helper's part, too, if it did not wait. What a thread writes was
      // the other one's before, so the end of its step takes long to be seen.
      const auto meet = [&](int thread) {
        for (++begun; begun < 2 * round;) std::this_thread::yield();
        for (auto& line : lines[(thread + round) % 2]) line[0] = round;
        return false;
      };
      pool.Run(2, meet);
    }
  });
  ASSERT_EQ(all.wait_for(kDeadline), std::future_status::ready) << "all threads sleep";
}

TEST(ThreadPoolTest, PartsOfARoundRunAtTheSameTimeOnTheirThreads) {
  ThreadPool pool(3, {.cores = 3, .now = &Standstill});
  const Executor executor = pool.executor();
  std::array<std::array<std::thread::id, 6>, 2> of_turn;
  std::array<int, 6> turn{};
  std::atomic<int> begun{0};
  // Nobody ends the first index of its part before all three have begun theirs.
  executor(6, [&](int i) {
    of_turn[turn[i]][i] = std::this_thread::get_id();
    if (i < 3 && ++begun % 3 == 0) begun.notify_all();
    const int all = 3 * (turn[i] + 1);
    for (int now = begun; i < 3 && now < all; now = begun) begun.wait(now);
    return ++turn[i] < 2;
  });
  const auto& thread_of = of_turn[0];
  EXPECT_EQ(of_turn[1], thread_of);
  EXPECT_EQ(thread_of[0], std::this_thread::get_id());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(thread_of[i], thread_of[i + 3]) << i;
  EXPECT_NE(thread_of[0], thread_of[1]);
  EXPECT_NE(thread_of[0], thread_of[2]);
  EXPECT_NE(thread_of[1], thread_of[2]);
}

TEST(ThreadPoolTest, WakesThreadsThatFellAsleep) {
  ThreadPool pool(2, {.cores = 2, .now = &Standstill});
  for (int round = 0; round < 3; ++round) {
    const auto before = pool.counts().slept;
    std::atomic<int> begun{0};
    const auto meet = [&](int) {
      if (++begun == 2) begun.notify_all();
      for (int now = begun; now < 2; now = begun) begun.wait(now);
      return false;
    };
    pool.Run(2, meet);
    const auto give_up = std::chrono::steady_clock::now() + kDeadline;
    while (pool.counts().slept == before && std::chrono::steady_clock::now() < give_up)
      std::this_thread::yield();
    EXPECT_GT(pool.counts().slept, before) << "a helper without work spins for ever";
  }
}

TEST(ThreadPoolTest, HasNoMoreThreadsThanCores) {
  EXPECT_EQ(ThreadPool(7, {.cores = 3}).threads(), 3);
  EXPECT_EQ(ThreadPool(2, {.cores = 3}).threads(), 2);
  EXPECT_EQ(ThreadPool(2, {.cores = 1}).threads(), 1);
}

TEST(ThreadPoolTest, AHelperThatHasNotBegunHoldsNothingUp) {
  Held held;
  ThreadPool pool(3, {.cores = 3, .now = &Standstill, .before_begin = [&](int) { held.Wait(); }});
  constexpr int kRounds = 100;
  std::vector<std::thread::id> ran_on;
  auto all = std::async(std::launch::async, [&] {
    for (int round = 0; round < kRounds; ++round) {
      pool.Run(3, [&](int) {
        ran_on.push_back(std::this_thread::get_id());
        return false;
      });
    }
    return std::this_thread::get_id();
  });
  EXPECT_TRUE(held.AwaitWaiting(2));
  const bool in_time = all.wait_for(kDeadline) == std::future_status::ready;
  held.LetGo();
  ASSERT_TRUE(in_time) << "the caller waits for helpers that the machine does not run";
  EXPECT_EQ(ran_on, std::vector<std::thread::id>(3 * kRounds, all.get()));
  EXPECT_EQ(pool.counts().taken_over, 2 * kRounds);
  // Late as they are, they find rounds that are over, and later ones to take part in.
  std::vector<int> seen(3, 0);
  for (int round = 0; round < kRounds; ++round) pool.Run(3, [&](int i) { return ++seen[i] < 0; });
  EXPECT_EQ(seen, std::vector<int>(3, kRounds));
}

// Each look at the clock of this one is a microsecond later: handing over costs as much as a part.
std::int64_t Ticking() {
  static std::int64_t ns = 0;
  return ns += 1'000;
}

TEST(ThreadPoolTest, HelpersThatNeverComeAreSoonAskedSeldom) {
  Held held;
  ThreadPool pool(2, {.cores = 2, .now = &Ticking, .before_begin = [&](int) { held.Wait(); }});
  constexpr int kRounds = 200'000;
  for (int round = 0; round < kRounds; ++round) pool.Run(2, kNothing);
  const ThreadPool::Counts counts = pool.counts();
  held.LetGo();
  EXPECT_EQ(counts.shared + counts.alone, kRounds);
  EXPECT_EQ(counts.taken_over, counts.shared);
  EXPECT_GT(counts.shared, 0);
  EXPECT_LT(counts.shared, kRounds / 20 + 1'000);
}

// Whatever helpers do: a part taken off its core at the worst time, help that never comes,
// hand-over that costs more than the work.
TEST(HelperAccountTest, LossesStayBelowAShareOfTheWork) {
  PERCS_TRACE_SEED();
  RandomStream random(test::Seed(), "helper account");
  for (int trial = 0; trial < 200; ++trial) {
    HelperAccount account;
    const auto up_to = [&](std::int64_t n) { return static_cast<std::int64_t>(random.Below(n)); };
    const std::int64_t part = 1 + up_to(1'000'000), stall = 1 + up_to(1'000'000'000);
    const std::int64_t one_in = 1 + up_to(1'000);
    std::int64_t elapsed = 0, one_thread = 0;
    for (int round = 0; round < 5'000; ++round) {
      const std::int64_t worked = up_to(part);
      if (!account.share()) {
        account.Alone(worked);
        elapsed += worked, one_thread += worked;
        continue;
      }
      const std::int64_t saved = up_to(worked + 1);
      const std::int64_t lost = up_to(one_in) == 0 ? stall : up_to(part);
      account.Shared(1, worked, saved, lost);
      elapsed += worked + lost, one_thread += worked + saved;
    }
    EXPECT_LE(elapsed, one_thread + one_thread / HelperAccount::kShare + HelperAccount::kReserve +
                           stall + part)
        << "trial " << trial;
  }
}

TEST(HelperAccountTest, SharesForAsLongAsItPays) {
  HelperAccount account;
  // A helper loses its core for a while now and then, for less than has been gained until then.
  for (int round = 0; round < 10'000; ++round) {
    account.Shared(1, 30'000, 28'000, round % 1'000 == 500 ? 10'000'000 : 3'000);
    ASSERT_TRUE(account.share()) << round;
  }
  account.Shared(1, 30'000, 28'000, 2 * HelperAccount::kGainedMost);
  int alone = 0;
  for (; !account.share(); ++alone) account.Alone(58'000);
  EXPECT_GT(alone, 0);
  EXPECT_LT(alone, 20'000);
}

// A long good time does not pay for a long bad one.
TEST(HelperAccountTest, PausesSoonWhenSharingPaysNoMore) {
  HelperAccount account;
  for (int round = 0; round < 1'000'000; ++round) account.Shared(1, 30'000, 28'000, 3'000);
  std::int64_t lost = 0;
  for (; account.share(); lost += 400'000) account.Shared(1, 30'000, 28'000, 400'000);
  EXPECT_LT(lost, HelperAccount::kGainedMost * 11 / 10);
}

TEST(HelperAccountTest, TriesLessOftenWhileItDoesNotPayAndAsOftenAsBeforeWhenItDoes) {
  HelperAccount account;
  const auto rounds_alone = [&account] {
    while (account.share()) account.Shared(1, 30'000, 1'000, 3'000'000);
    int alone = 0;
    for (; !account.share(); ++alone) account.Alone(60'000);
    return alone;
  };
  const int first = rounds_alone(), second = rounds_alone();
  EXPECT_GT(second, first * 3 / 2);
  int last = second;
  for (int trial = 0; trial < 10; ++trial) last = rounds_alone();
  EXPECT_GT(last, 10 * first);
  EXPECT_EQ(rounds_alone(), last) << "but never gives it up";
  for (int round = 0; round < 100; ++round) account.Shared(1, 30'000, 28'000, 3'000);
  const int again = rounds_alone();
  EXPECT_GT(again, 0);
  EXPECT_LE(again, first);
}

}  // namespace
}  // namespace percs
