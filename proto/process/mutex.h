// Mutexes whose use clang's thread-safety analysis checks (tests/tidy/lint). Those of the standard
// library carry no annotations; those of Abseil do, but the thread sanitizer does not see a lock
// inside Debian's Abseil, which is not instrumented.
//
// What a mutex guards is declared with ABSL_GUARDED_BY, what is called with it held with
// ABSL_EXCLUSIVE_LOCKS_REQUIRED. To wait, hold a MutexLock and call
// std::condition_variable_any::wait(mutex). A lambda is a function of its own to the analysis: if
// it runs with the mutex held, it says so after its parameters.
#pragma once

#include <mutex>

#include "absl/base/thread_annotations.h"

namespace percs {

template <typename Standard>
class ABSL_LOCKABLE AnnotatedMutex {
 public:
  void lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { mutex_.lock(); }
  void unlock() ABSL_UNLOCK_FUNCTION() { mutex_.unlock(); }

 private:
  Standard mutex_;
};
using Mutex = AnnotatedMutex<std::mutex>;
using RecursiveMutex = AnnotatedMutex<std::recursive_mutex>;

// Holds the mutex until its end, except between unlock() and lock().
template <typename M>
class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(M& mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex) : lock_(mutex) {}
  ~MutexLock() ABSL_UNLOCK_FUNCTION() {}
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  void lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { lock_.lock(); }
  void unlock() ABSL_UNLOCK_FUNCTION() { lock_.unlock(); }

 private:
  std::unique_lock<M> lock_;
};

}  // namespace percs
