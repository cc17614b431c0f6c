#include "client/lib/executor.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "emulator/base/check.h"

namespace percs {
namespace {

constexpr int kSpins = 2'000;  // some 20 to 100 us, by the processor: longer than most windows

void Relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

int UsableCores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

std::int64_t SteadyNow() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

ThreadPoolSettings Completed(ThreadPoolSettings settings) {
  if (settings.cores == 0) settings.cores = UsableCores();
  if (settings.now == nullptr) settings.now = &SteadyNow;
  return settings;
}

}  // namespace

ThreadPool::ThreadPool(int threads, ThreadPoolSettings settings)
    : settings_(Completed(std::move(settings))) {
  PERCS_CHECK(threads >= 1);
  for (int thread = 1; thread < std::min(threads, settings_.cores); ++thread) {
    helpers_.push_back(std::make_unique<Helper>());
    helpers_.back()->thread = thread;
  }
  for (const auto& helper : helpers_)
    helper->runs = std::thread([this, h = helper.get()] { Work(*h); });
}

ThreadPool::~ThreadPool() {
  stop_.store(true, std::memory_order_relaxed);
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
  for (const auto& helper : helpers_) helper->runs.join();
}

void ThreadPool::Run(int count, absl::FunctionRef<void(int)> body) {
  const auto& now = settings_.now;
  const std::int64_t begin = now();
  if (helpers_.empty() || count <= 1 || !account_.share()) {
    for (int i = 0; i < count; ++i) body(i);
    account_.Alone(now() - begin);
    ++counts_.alone;
    return;
  }
  count_ = count;
  body_ = &body;
  const std::uint64_t round = round_.load(std::memory_order_relaxed) + 1;
  round_.store(round, std::memory_order_release);
  round_.notify_all();
  const std::int64_t handed_over = now();
  RunPart(0);
  std::uint64_t taken_over = 0;
  for (auto helper = helpers_.rbegin(); helper != helpers_.rend(); ++helper) {
    if (!Take(**helper, round)) continue;
    RunPart((*helper)->thread);
    (*helper)->began = (*helper)->ended = 0;
    (*helper)->done.store(round, std::memory_order_relaxed);
    ++taken_over;
  }
  const std::int64_t idle = now();
  // Parts are about equal. If a helper took longer for its own, it may have been off its core.
  const std::int64_t worked = idle - handed_over;
  std::int64_t saved = 0;
  for (const auto& helper : helpers_) {
    while (helper->done.load(std::memory_order_acquire) != round) Await(helper->done, round - 1);
    saved += std::min(helper->ended - helper->began, worked);
  }
  account_.Shared(worked, saved, (handed_over - begin) + (now() - idle));
  counts_.taken_over += taken_over;
  ++counts_.shared;
}

Executor ThreadPool::executor() {
  return [this](int count, absl::FunctionRef<void(int)> body) { Run(count, body); };
}

ThreadPool::Counts ThreadPool::counts() const {
  Counts counts = counts_;
  counts.slept = slept_.load(std::memory_order_relaxed);
  return counts;
}

void ThreadPool::RunPart(int thread) {
  for (int i = thread; i < count_; i += threads()) (*body_)(i);
}

// Every round is taken, so a part that is not taken yet is of the previous round; a thread that
// arrives for a round that is over takes nothing.
bool ThreadPool::Take(Helper& helper, std::uint64_t round) {
  std::uint64_t before = round - 1;
  return helper.taken.compare_exchange_strong(before, round, std::memory_order_acq_rel);
}

std::uint64_t ThreadPool::Await(const std::atomic<std::uint64_t>& value, std::uint64_t last) {
  for (int spin = 0; spin < kSpins; ++spin) {
    const std::uint64_t now = value.load(std::memory_order_acquire);
    if (now != last) return now;
    Relax();
  }
  slept_.fetch_add(1, std::memory_order_relaxed);
  value.wait(last, std::memory_order_acquire);
  return value.load(std::memory_order_acquire);
}

void ThreadPool::Work(Helper& helper) {
  for (std::uint64_t round = 0;;) {
    round = Await(round_, round);
    if (stop_.load(std::memory_order_relaxed)) return;
    if (settings_.before_begin) settings_.before_begin(helper.thread);
    if (!Take(helper, round)) continue;
    helper.began = settings_.now();
    RunPart(helper.thread);
    helper.ended = settings_.now();
    helper.done.store(round, std::memory_order_release);
    helper.done.notify_one();
  }
}

}  // namespace percs
