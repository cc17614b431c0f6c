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

void ThreadPool::Run(int count, ExecutorStep step) {
  std::int64_t at = settings_.now();
  count_ = count;
  step_.emplace(step);
  if (helpers_.empty() || count <= 1 || !account_.share()) {
    RunAlone();
    account_.Alone(settings_.now() - at);
    ++counts_.alone;
    return;
  }
  const Round round = round_.load(std::memory_order_relaxed) + 1;
  Done(round_, round);
  Turn turn = turn_;
  std::int64_t worked = 0, saved = 0, lost = 0;
  bool again = true;
  for (bool may_take = true; again; may_take = false) {
    AwaitTurn(turn++);
    const std::int64_t began = settings_.now();
    lost += began - at;
    again = RunTurn(0);
    at = settings_.now();
    worked += at - began;
    Done(parts_[0]->turn_done, turn);
    RunTakenOver(round, turn, may_take);
  }
  AwaitDone(round);
  lost += settings_.now() - at;
  for (int thread = 1; thread < threads(); ++thread) {
    const Part& part = *parts_[static_cast<std::size_t>(thread)];
    // Parts are about equal. If a helper took longer for its own, it may have been off its core.
    if (!part.taken_over) saved += std::min(part.worked, worked);
  }
  account_.Shared(static_cast<int>(turn - turn_), worked, saved, lost);
  turn_ = turn;
  ++counts_.shared;
}

Executor ThreadPool::executor() {
  return [this](int count, ExecutorStep step) { Run(count, step); };
}

ThreadPool::Counts ThreadPool::counts() const {
  Counts counts = counts_;
  counts.slept = slept_.load(std::memory_order_relaxed);
  return counts;
}

void ThreadPool::RunAlone() {
  bool again = count_ > 0;
  while (again) {
    for (int i = 0; i < count_; ++i) again = (*step_)(i);
  }
}

bool ThreadPool::RunTurn(int thread) const {
  bool again = false;
  for (int i = thread; i < count_; i += threads()) again = (*step_)(i);
  return again;
}

void ThreadPool::RunTakenOver(Round round, Turn turn, bool may_take) {
  for (int thread = threads() - 1; thread > 0; --thread) {
    Part& part = *parts_[static_cast<std::size_t>(thread)];
    if (may_take) {
      part.taken_over = Take(part, round);
      counts_.taken_over += part.taken_over;
    }
    if (!part.taken_over) continue;
    RunTurn(thread);
    Done(part.turn_done, turn);
  }
}

// Every round is taken, so a part that is not taken yet is of the previous round; a thread that
// arrives for a round that is over takes nothing.
bool ThreadPool::Take(Part& part, Round round) {
  // Another thread's cache line is looked at before it is written to.
  if (part.taken.load(std::memory_order_relaxed) != round - 1) return false;
  Round before = round - 1;
  return part.taken.compare_exchange_strong(before, round, std::memory_order_acq_rel);
}

void ThreadPool::Done(std::atomic<std::uint32_t>& done, std::uint32_t number) {
  // Not only release: either this sees a thread that is about to sleep, or that thread sees this.
  done.store(number, std::memory_order_seq_cst);
  if (sleepers_.load(std::memory_order_seq_cst) > 0) done.notify_all();
}

// Those of earlier rounds are done. Threads without an index take no part in turns.
void ThreadPool::AwaitTurn(Turn turn) {
  if (turn == turn_) return;
  const int busy = std::min(threads(), count_);
  for (int thread = 0; thread < busy; ++thread)
    Await(parts_[static_cast<std::size_t>(thread)]->turn_done, turn);
}

void ThreadPool::AwaitDone(Round round) {
  for (int thread = 1; thread < threads(); ++thread) {
    Part& part = *parts_[static_cast<std::size_t>(thread)];
    if (part.taken_over) {
      part.done.store(round, std::memory_order_relaxed);
    } else {
      Await(part.done, round);
    }
  }
}

std::uint32_t ThreadPool::Await(const std::atomic<std::uint32_t>& value, std::uint32_t number) {
  const auto reached = [number](std::uint32_t now) {
    return static_cast<std::int32_t>(now - number) >= 0;
  };
  for (int spin = 0; spin < settings_.spins; ++spin) {
    const std::uint32_t now = value.load(std::memory_order_acquire);
    if (reached(now)) return now;
    Relax();
  }
  slept_.fetch_add(1, std::memory_order_relaxed);
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  std::uint32_t now = value.load(std::memory_order_seq_cst);
  for (; !reached(now); now = value.load(std::memory_order_seq_cst))
    value.wait(now, std::memory_order_seq_cst);
  sleepers_.fetch_sub(1, std::memory_order_relaxed);
  return now;
}

void ThreadPool::Work(int thread) {
  Part& part = *parts_[static_cast<std::size_t>(thread)];
  for (Round round = 0;;) {
    round = Await(round_, round + 1);
    if (stop_.load(std::memory_order_relaxed)) return;
    if (settings_.before_begin) settings_.before_begin(thread);
    if (!Take(part, round)) continue;
    part.worked = 0;
    Turn turn = turn_;
    bool again = thread < count_;
    while (again) {
      AwaitTurn(turn);
      const std::int64_t began = settings_.now();
      again = RunTurn(thread);
      part.worked += settings_.now() - began;
      Done(part.turn_done, ++turn);
    }
    Done(part.done, round);
  }
}

}  // namespace percs
