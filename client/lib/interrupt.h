// Ctrl-C and SIGTERM as a question instead of an end: while one of these lives, the first signal
// sets a flag and the second one ends the process.
#pragma once

namespace percs {

class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
  static bool raised();
};

}  // namespace percs
