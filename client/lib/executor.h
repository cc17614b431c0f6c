// Threads for emulator/, which has none of its own: a pool whose hand-over costs about a
// microsecond, because a window of virtual time is often not much longer than that. A machine that
// is busy with something else may take a helper off its core at any time, so nothing waits for a
// helper that has not begun: the caller does that helper's part, too.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"
#include "client/lib/helper_account.h"
#include "emulator/sim/fabric.h"

namespace percs {

struct ThreadPoolSettings {
  int cores = 0;                                      // 0: those that this process may use
  std::int64_t (*now)() = nullptr;                    // in ns; null: the steady clock
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

  int threads() const { return static_cast<int>(helpers_.size()) + 1; }
  // Runs body(0..count-1) and returns when all are done. Index i runs on thread i mod threads(), so
  // a partition stays in one core's cache, unless that thread is late or does not pay; then it
  // runs on the caller's.
  void Run(int count, absl::FunctionRef<void(int)> body);
  // REQUIRES: the pool outlives it.
  Executor executor();
  Counts counts() const;

 private:
  // Each in cache lines of its own: two threads write here every few microseconds.
  struct alignas(64) Helper {
    int thread = 0;
    std::atomic<std::uint64_t> taken{0};  // the last round whose part was begun, by any thread
    std::atomic<std::uint64_t> done{0};   // the last round whose part the helper has done
    std::int64_t began = 0, ended = 0;    // of that part, written before done
    std::thread runs;
  };

  void Work(Helper& helper);
  void RunPart(int thread);
  bool Take(Helper& helper, std::uint64_t round);
  // Returns the value, once it is no longer `last`; bounded spinning, then sleep.
  std::uint64_t Await(const std::atomic<std::uint64_t>& value, std::uint64_t last);

  const ThreadPoolSettings settings_;
  HelperAccount account_;
  Counts counts_;
  std::atomic<std::uint64_t> slept_{0};
  alignas(64) std::atomic<std::uint64_t> round_{0};
  std::atomic<bool> stop_{false};
  int count_ = 0;                                       // written before round_ is raised
  const absl::FunctionRef<void(int)>* body_ = nullptr;  // likewise
  std::vector<std::unique_ptr<Helper>> helpers_;
};

}  // namespace percs
