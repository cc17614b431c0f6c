// Threads for emulator/, which has none of its own: a pool whose hand-over costs about a
// microsecond, because a window of virtual time is often not much longer than that.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"
#include "emulator/sim/fabric.h"

namespace percs {

// THREAD: Run() is called from one thread at a time, the one that then works as thread 0.
class ThreadPool {
 public:
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }
  // Runs body(0..count-1) and returns when all are done. Index i always runs on thread i mod
  // threads(), so a partition stays in one core's cache.
  void Run(int count, absl::FunctionRef<void(int)> body);
  // REQUIRES: the pool outlives it.
  Executor executor();

 private:
  void Work(int thread);
  std::uint64_t AwaitRound(std::uint64_t last) const;

  int spins_;  // before a waiting thread sleeps; 0 when there are more threads than cores
  std::atomic<std::uint64_t> round_{0};
  std::atomic<int> running_{0};
  std::atomic<bool> stop_{false};
  int count_ = 0;                                       // written before round_ is raised
  const absl::FunctionRef<void(int)>* body_ = nullptr;  // likewise
  std::vector<std::thread> workers_;
};

}  // namespace percs
