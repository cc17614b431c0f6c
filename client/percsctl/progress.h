// The line that tells how far a long run is: on a terminal's standard error only, from the first
// second on.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "emulator/scenario/scenario.h"

namespace percs {

class ProgressLine {
 public:
  explicit ProgressLine(const Scenario& scenario);
  ~ProgressLine() { Clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void Show(Time now, std::uint64_t packets_delivered);
  void Clear();  // takes the line away again
  double wall_seconds() const;

  // The text, without the terminal. `expected_*`: 0 if unknown.
  static std::string Text(Time now, std::uint64_t packets, double wall_seconds, Time expected_end,
                          std::uint64_t expected_packets);

 private:
  using Clock = std::chrono::steady_clock;
  Time expected_end_;
  std::uint64_t expected_packets_;
  bool terminal_;
  bool shown_ = false;
  Clock::time_point start_ = Clock::now();
  Clock::time_point next_ = start_ + std::chrono::seconds(1);
};

}  // namespace percs
