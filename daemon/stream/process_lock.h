// The one lock of a process and what is still under way in gRPC's hands: a process may not end
// before all of that has come back. Reactions, timers and requests all run with the lock held, one
// at a time.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "daemon/stream/wall_clock.h"

namespace percs {

// A mutex that has a last word each time before it is let go.
class ProcessMutex {
 public:
  void lock() { mutex_.lock(); }
  void unlock() {
    if (before_unlock_) before_unlock_();
    mutex_.unlock();
  }
  // REQUIRES: locked. Called with the lock held; it may not let go of it.
  void BeforeUnlock(std::function<void()> then) { before_unlock_ = std::move(then); }

 private:
  std::mutex mutex_;
  std::function<void()> before_unlock_;
};

class ProcessLock {
 public:
  // The clock lives as long as this.
  explicit ProcessLock(WallClock* clock = &WallClock::Real()) : clock_(clock) {}

  WallClock& clock() const { return *clock_; }
  ProcessMutex& mutex() { return mutex_; }
  // REQUIRES: locked.
  void Add() { ++outstanding_; }
  void Remove() {
    if (--outstanding_ == 0) none_.notify_all();
  }
  // Blocks until nothing is outstanding.
  void WaitForNone() {
    std::unique_lock<ProcessMutex> lock(mutex_);
    none_.wait(lock, [this] { return outstanding_ == 0; });
  }

 private:
  WallClock* const clock_;
  ProcessMutex mutex_;
  std::condition_variable_any none_;
  int outstanding_ = 0;
};

using LockGuard = std::lock_guard<ProcessMutex>;

// Calls back once after a wall time, with the lock held. THREAD: used with the lock held.
class Timer {
 public:
  explicit Timer(ProcessLock* lock) : lock_(lock) {}
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  // Replaces what was set before.
  void Set(std::chrono::nanoseconds after, std::function<void()> then) {
    Cancel();
    alarm_ = lock_->clock().Set(lock_, after, std::move(then));
  }
  void Cancel() { alarm_.reset(); }

 private:
  ProcessLock* lock_;
  std::unique_ptr<WallClock::Alarm> alarm_;
};

}  // namespace percs
