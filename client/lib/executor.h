// Threads for emulator/, which has none of its own: a pool whose hand-over costs about a
// microsecond, because a window of virtual time is often not much longer than that. A machine that
// is busy with something else may take a helper off its core at any time, so nothing waits for a
// helper that has not begun: the caller does that helper's part, too. All turns of a round are one
// hand-over; in each of them every thread looks by itself whether the others have done the turn
// before.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "client/lib/helper_account.h"
#include "emulator/sim/fabric.h"

namespace percs {

struct ThreadPoolSettings {
  int cores = 0;                                      // 0: those that this process may use
  std::int64_t (*now)() = nullptr;                    // in ns; null: the steady clock
  int spins = 2'000;                                  // looks before a wait becomes a sleep
  std::function<void(int thread)> before_begin = {};  // a helper has seen a round: for tests
};

// THREAD: Run() is called from one thread at a time, the one that then works as thread 0.
class ThreadPool {
 public:
  struct Counts {
    std::uint64_t shared = 0, alone = 0;  // rounds
    std::uint64_t taken_over = 0;         // parts of helpers that the caller did
    std::uint64_t slept = 0;              // waits that did not end while spinning
  };

  // Of no more threads than there are cores: one more would only take turns with the others.
  explicit ThreadPool(int threads, ThreadPoolSettings settings = {});
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(parts_.size()); }
  // As Executor says. Index i runs on thread i mod threads(), so a partition stays in one core's
  // cache, unless that thread is late or does not pay; then it runs on the caller's.
  void Run(int count, ExecutorStep step);
  // REQUIRES: the pool outlives it.
  Executor executor();
  Counts counts() const;

 private:
  // Numbers modulo 2^32: the library waits for 32 bits without memory that all waits share.
  using Round = std::uint32_t;
  using Turn = std::uint32_t;
  // One thread's part of a round. Each in cache lines of its own: two threads write here every few
  // microseconds.
  struct alignas(64) Part {
    std::atomic<Round> taken{0};     // the last round that was begun here, by any thread
    std::atomic<Turn> turn_done{0};  // the last turn that is done
    std::atomic<Round> done{0};      // the last round that is
    std::int64_t worked = 0;         // ns of a helper's steps, written before `done`
    bool taken_over = false;         // in this round, by the caller, which alone looks at it
  };

  void Work(int thread);
  void RunAlone();
  // The steps of a thread's indices, of one turn. Whether there is another turn.
  bool RunTurn(int thread) const;
  // The same of parts that the caller does besides its own, which it may take over now.
  void RunTakenOver(Round round, Turn turn, bool may_take);
  bool Take(Part& part, Round round);
  // `done` gets the number, for all who wait for it.
  void Done(std::atomic<std::uint32_t>& done, std::uint32_t number);
  // Until all have done it.
  void AwaitTurn(Turn turn);
  void AwaitDone(Round round);
  // Until the value is the number or a later one, which it returns; bounded spinning, then sleep.
  std::uint32_t Await(const std::atomic<std::uint32_t>& value, std::uint32_t number);

  const ThreadPoolSettings settings_;
  HelperAccount account_;
  Counts counts_;
  // Seldom written, and read after each turn.
  alignas(64) std::atomic<int> sleepers_{0};
  std::atomic<std::uint64_t> slept_{0};
  alignas(64) std::atomic<Round> round_{0};
  std::atomic<bool> stop_{false};
  // Written before round_ is raised, in its cache line.
  int count_ = 0;
  std::optional<ExecutorStep> step_;
  Turn turn_ = 0;                             // the last one of the round before
  std::vector<std::unique_ptr<Part>> parts_;  // by thread
  std::vector<std::thread> helpers_;
};

}  // namespace percs
