// Wall time of a process: the time, and alarms. Everything in a process that waits, waits by the
// clock of its ProcessLock; the simulator (tests/simulator) has another clock than the machine's.
#pragma once

#include <chrono>
#include <functional>
#include <memory>

namespace percs {

class ProcessLock;

class WallClock {
 public:
  using Point = std::chrono::steady_clock::time_point;
  class Alarm {
   public:
    virtual ~Alarm() = default;
  };
  virtual ~WallClock() = default;

  virtual Point Now() const = 0;
  // Calls `then` once, with the lock held, unless the alarm is destroyed before. THREAD: called,
  // and the alarm destroyed, with the lock held.
  virtual std::unique_ptr<Alarm> Set(ProcessLock* lock, std::chrono::nanoseconds after,
                                     std::function<void()> then) = 0;

  // The machine's.
  static WallClock& Real();
};

}  // namespace percs
