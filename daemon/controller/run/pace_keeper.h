// Virtual time against wall time: holds it back to the pace in live mode and measures the pace
// reached.
#pragma once

#include <chrono>
#include <cstdint>

#include "emulator/base/time.h"
#include "proto/scenario/build.h"

namespace percs {

class PaceKeeper {
 public:
  using Clock = std::chrono::steady_clock;
  explicit PaceKeeper(const Pacing& pacing) : pacing_(pacing) {}

  const Pacing& pacing() const { return pacing_; }
  bool paced() const { return pacing_.live && pacing_.pace > 0; }
  // Rates count from `virtual_time` and this number of windows.
  void Start(Clock::time_point now, Time virtual_time = 0, std::uint64_t windows = 0);
  // Another pace, in virtual picoseconds per wall second, from `virtual_time` on; 0: no limit.
  // REQUIRES: pace >= 0.
  void Set(Time pace, Clock::time_point now, Time virtual_time);
  // Continues from `virtual_time` after a pause.
  void Resume(Clock::time_point now, Time virtual_time);
  // Virtual time may not be beyond this now; kNever when not paced.
  Time Allowed(Clock::time_point now) const;
  // Wall time from now until virtual time may be `t`; zero if it may.
  std::chrono::nanoseconds WaitFor(Time t, Clock::time_point now) const;
  // Called often; keeps rates over about the last second.
  void Measure(Clock::time_point now, Time virtual_time, std::uint64_t windows);

  // Start of its measurement.
  Time first_virtual() const { return first_virtual_; }
  std::uint64_t first_window() const { return first_window_; }
  double windows_per_second() const { return windows_per_second_; }
  double pace_reached() const { return pace_reached_; }  // virtual picoseconds per wall second
  // Expected pace, in picoseconds per wall second; 0 if not known yet.
  Time Expected() const { return paced() ? pacing_.pace : static_cast<Time>(pace_reached_); }
  double BehindSeconds(Clock::time_point now, Time virtual_time) const;

 private:
  Pacing pacing_;
  Clock::time_point start_, sampled_;
  Time first_virtual_ = 0, sampled_virtual_ = 0;
  std::uint64_t first_window_ = 0, sampled_windows_ = 0;
  double windows_per_second_ = 0, pace_reached_ = 0;
};

}  // namespace percs
