#include "client/lib/executor.h"

#include "emulator/base/check.h"

namespace percs {
namespace {

constexpr int kSpins = 4'000;  // some 100 us: longer than a window, shorter than anyone notices

void Relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

ThreadPool::ThreadPool(int threads) {
  PERCS_CHECK(threads >= 1);
  const unsigned cores = std::thread::hardware_concurrency();
  spins_ = static_cast<unsigned>(threads) <= cores ? kSpins : 0;
  for (int thread = 1; thread < threads; ++thread) {
    workers_.emplace_back([this, thread] { Work(thread); });
  }
}

ThreadPool::~ThreadPool() {
  stop_.store(true, std::memory_order_relaxed);
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::Run(int count, absl::FunctionRef<void(int)> body) {
  if (workers_.empty() || count <= 1) {
    for (int i = 0; i < count; ++i) body(i);
    return;
  }
  count_ = count;
  body_ = &body;
  running_.store(static_cast<int>(workers_.size()), std::memory_order_relaxed);
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
  for (int i = 0; i < count; i += threads()) body(i);
  for (int spin = 0;; ++spin) {
    const int running = running_.load(std::memory_order_acquire);
    if (running == 0) return;
    if (spin < spins_) {
      Relax();
    } else {
      running_.wait(running, std::memory_order_acquire);
    }
  }
}

Executor ThreadPool::executor() {
  return [this](int count, absl::FunctionRef<void(int)> body) { Run(count, body); };
}

std::uint64_t ThreadPool::AwaitRound(std::uint64_t last) const {
  for (int spin = 0;; ++spin) {
    const std::uint64_t round = round_.load(std::memory_order_acquire);
    if (round != last) return round;
    if (spin < spins_) {
      Relax();
    } else {
      round_.wait(last, std::memory_order_acquire);
    }
  }
}

void ThreadPool::Work(int thread) {
  for (std::uint64_t round = 0;;) {
    round = AwaitRound(round);
    if (stop_.load(std::memory_order_relaxed)) return;
    for (int i = thread; i < count_; i += threads()) (*body_)(i);
    if (running_.fetch_sub(1, std::memory_order_acq_rel) == 1) running_.notify_one();
  }
}

}  // namespace percs
