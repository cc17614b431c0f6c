#include "client/lib/executor.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "emulator/base/check.h"

namespace percs {
namespace {

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
  const int used = std::max(1, std::min(threads, settings_.cores));
  for (int thread = 0; thread < used; ++thread) parts_.push_back(std::make_unique<Part>());
  for (int thread = 1; thread < used; ++thread)
    helpers_.emplace_back([this, thread] { Work(thread); });
}

ThreadPool::~ThreadPool() {
  stop_.store(true, std::memory_order_relaxed);
  Done(round_, round_.load(std::memory_order_relaxed) + 1);
  for (std::thread& helper : helpers_) helper.join();
}

void ThreadPool::Run(int count, ExecutorStep first, ExecutorStep second) {
  const std::int64_t begin = settings_.now();
  if (helpers_.empty() || count <= 1 || !account_.share()) {
    for (int i = 0; i < count; ++i) first(i);
    for (int i = 0; i < count; ++i) second(i);
    account_.Alone(settings_.now() - begin);
    ++counts_.alone;
    return;
  }
  count_ = count;
  first_.emplace(first);
  second_.emplace(second);
  const Round round = round_.load(std::memory_order_relaxed) + 1;
  Done(round_, round);
  RunStep(first, 0);
  const std::int64_t worked = settings_.now() - begin;
  Done(parts_[0]->first_done, round);
  for (int thread = threads() - 1; thread > 0; --thread) {
    Part& part = *parts_[static_cast<std::size_t>(thread)];
    part.taken_over = Take(part, round);
    if (!part.taken_over) continue;
    RunStep(first, thread);
    part.worked = 0;
    Done(part.first_done, round);
    ++counts_.taken_over;
  }
  AwaitFirst(round);
  RunStep(second, 0);
  std::int64_t saved = 0;
  for (int thread = 1; thread < threads(); ++thread) {
    Part& part = *parts_[static_cast<std::size_t>(thread)];
    if (part.taken_over) {
      RunStep(second, thread);
      part.done.store(round, std::memory_order_relaxed);
    }
    Await(part.done, round - 1);
    // Parts are about equal. If a helper took longer for its own, it may have been off its core.
    saved += std::min(part.worked, worked);
  }
  // The second step is short. It counts as lost, though helpers save some of it, too.
  account_.Shared(worked, saved, settings_.now() - begin - worked);
  ++counts_.shared;
}

Executor ThreadPool::executor() {
  return [this](int count, ExecutorStep first, ExecutorStep second) { Run(count, first, second); };
}

ThreadPool::Counts ThreadPool::counts() const {
  Counts counts = counts_;
  counts.slept = slept_.load(std::memory_order_relaxed);
  return counts;
}

void ThreadPool::RunStep(ExecutorStep step, int thread) const {
  for (int i = thread; i < count_; i += threads()) step(i);
}

// Every round is taken, so a part that is not taken yet is of the previous round; a thread that
// arrives for a round that is over takes nothing.
bool ThreadPool::Take(Part& part, Round round) {
  // Another thread's cache line is looked at before it is written to.
  if (part.taken.load(std::memory_order_relaxed) != round - 1) return false;
  Round before = round - 1;
  return part.taken.compare_exchange_strong(before, round, std::memory_order_acq_rel);
}

void ThreadPool::Done(std::atomic<Round>& done, Round round) {
  // Not only release: either this sees a thread that is about to sleep, or that thread sees this.
  done.store(round, std::memory_order_seq_cst);
  if (sleepers_.load(std::memory_order_seq_cst) > 0) done.notify_all();
}

void ThreadPool::AwaitFirst(Round round) {
  for (const auto& part : parts_) Await(part->first_done, round - 1);
}

auto ThreadPool::Await(const std::atomic<Round>& value, Round last) -> Round {
  for (int spin = 0; spin < settings_.spins; ++spin) {
    const Round now = value.load(std::memory_order_acquire);
    if (now != last) return now;
    Relax();
  }
  slept_.fetch_add(1, std::memory_order_relaxed);
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  value.wait(last, std::memory_order_seq_cst);
  sleepers_.fetch_sub(1, std::memory_order_relaxed);
  return value.load(std::memory_order_acquire);
}

void ThreadPool::Work(int thread) {
  Part& part = *parts_[static_cast<std::size_t>(thread)];
  for (Round round = 0;;) {
    round = Await(round_, round);
    if (stop_.load(std::memory_order_relaxed)) return;
    if (settings_.before_begin) settings_.before_begin(thread);
    if (!Take(part, round)) continue;
    const std::int64_t began = settings_.now();
    RunStep(*first_, thread);
    part.worked = settings_.now() - began;
    Done(part.first_done, round);
    AwaitFirst(round);
    RunStep(*second_, thread);
    Done(part.done, round);
  }
}

}  // namespace percs
