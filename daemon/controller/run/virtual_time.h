// Where virtual time of a run is. Windows advance it. Its pace, a pause, programs that owe their
// next calls, and an idle run with only faults left hold it.
//
// Pure: the caller says what time it is. THREAD: calls do not overlap.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "daemon/controller/run/pace_keeper.h"
#include "daemon/controller/run/window_master.h"
#include "emulator/base/time.h"

namespace percs {

class VirtualTime {
 public:
  using Clock = PaceKeeper::Clock;
  // kRetaking: commands of another controller are to take effect again.
  enum class Phase { kMoving, kRetaking, kPaused, kEnded };

  // The master lives as long as this.
  VirtualTime(const Pacing& pacing, const WindowMaster& master) : master_(master), pace_(pacing) {}

  PaceKeeper& pace() { return pace_; }
  const PaceKeeper& pace() const { return pace_; }
  // The run begins, or another controller continues it where its last window ended.
  void Start(Clock::time_point now);
  void End(Clock::time_point now) { ended_ = now; }
  bool started() const { return started_.has_value(); }
  // Since Start, until End.
  double WallSeconds(Clock::time_point now) const;

  // Where windows, the pace and pauses have it now. After a takeover it may be before commands that
  // took effect, because reports of the window before them were not saved.
  Time Standstill(Phase phase, Clock::time_point now) const;
  // When a command that arrives now takes effect.
  Time Now(Phase phase, Clock::time_point now) const;
  // For people: never less than what was said before.
  Time Said(Phase phase, Clock::time_point now) const;
  // Nothing takes effect before it: the last command, and the last pause that was left.
  Time not_before() const { return not_before_; }
  void NotBefore(Time at);

  // Its upper limit.
  const std::optional<Time>& pause_at() const { return pause_at_; }
  void PauseAt(std::optional<Time> at) { pause_at_ = at; }
  // Continues from where it paused, if it did.
  void LeavePause(Phase phase, Clock::time_point now);

  // Another pace from where it is, which it returns. REQUIRES: pace >= 0.
  Time SetPace(Time pace, Phase phase, Clock::time_point now);

  // Only faults to come are left, and virtual time is held for them.
  void HoldForFaults(Phase phase, Clock::time_point now);
  void ReleaseFaults(Clock::time_point now);
  // Programs owe their next calls, or no longer. A paced run has lost no time meanwhile.
  void HoldForPrograms(bool held, Clock::time_point now);
  // Where programs held it, until their requests have taken effect; then as Now.
  Time TakeReleased(Phase phase, Clock::time_point now);
  void ForgetReleased() { released_at_.reset(); }

 private:
  const WindowMaster& master_;
  PaceKeeper pace_;
  std::optional<Clock::time_point> started_, ended_;
  std::optional<Time> pause_at_;
  std::optional<Time> faults_hold_at_, programs_hold_at_, released_at_;
  Time not_before_ = 0;
  mutable Time said_ = 0;
};

}  // namespace percs
