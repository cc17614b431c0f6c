// The one lock of a process and the number of calls outstanding in gRPC: a process may not end
// before all of them have come back. Reactions, timers and requests all run with the lock held, one
// at a time.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <utility>

#include "daemon/stream/wall_clock.h"
#include "proto/process/mutex.h"

namespace percs {

// The lock as clang's thread-safety analysis knows it. A process has one, so it has one name, and
// not one for each object that has a pointer to it.
class ABSL_LOCKABLE ProcessCapability {};
inline constexpr ProcessCapability kProcess;

// Follows the parameters of a function or of a lambda that runs with the process's lock held.
#define PERCS_LOCKED ABSL_EXCLUSIVE_LOCKS_REQUIRED(::percs::kProcess)
// Follows the name of a member that is used only with the process's lock held. If the member is an
// object with methods, this says it of all of them.
#define PERCS_GUARDED ABSL_GUARDED_BY(::percs::kProcess)
// The same of what a pointer points to.
#define PERCS_PT_GUARDED ABSL_PT_GUARDED_BY(::percs::kProcess)

// A mutex that has a last word each time before it is let go.
class ProcessMutex {
 public:
  // The analysis knows only the capability, not the mutex inside.
  void lock() ABSL_EXCLUSIVE_LOCK_FUNCTION(kProcess) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    mutex_.lock();
  }
  void unlock() ABSL_UNLOCK_FUNCTION(kProcess) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    if (before_unlock_) before_unlock_();
    mutex_.unlock();
  }
  // `then` must not release the lock.
  void BeforeUnlock(std::function<void()> then) PERCS_LOCKED { before_unlock_ = std::move(then); }

 private:
  Mutex mutex_;
  std::function<void()> before_unlock_;
};

class ProcessLock {
 public:
  // The clock lives as long as this.
  explicit ProcessLock(WallClock* clock = &WallClock::Real()) : clock_(clock) {}

  WallClock& clock() const { return *clock_; }
  ProcessMutex& mutex() { return mutex_; }
  void Add() PERCS_LOCKED { ++outstanding_; }
  void Remove() PERCS_LOCKED {
    if (--outstanding_ == 0) none_.notify_all();
  }
  // Blocks until nothing is outstanding.
  void WaitForNone() {
    mutex_.lock();
    while (outstanding_ != 0) none_.wait(mutex_);
    mutex_.unlock();
  }

 private:
  WallClock* const clock_;
  ProcessMutex mutex_;
  std::condition_variable_any none_;
  int outstanding_ PERCS_GUARDED = 0;
};

class ABSL_SCOPED_LOCKABLE LockGuard {
 public:
  explicit LockGuard(ProcessMutex& mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(kProcess) : mutex_(mutex) {
    mutex_.lock();
  }
  ~LockGuard() ABSL_UNLOCK_FUNCTION() { mutex_.unlock(); }
  LockGuard(const LockGuard&) = delete;
  LockGuard& operator=(const LockGuard&) = delete;

 private:
  ProcessMutex& mutex_;
};

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
