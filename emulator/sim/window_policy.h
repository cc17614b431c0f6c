// Between two windows of virtual time: does the next one open, or is the run over, and why? One
// rule for a run in one process and for the controller of many daemons (docs/semantics.md rule 5).
#pragma once

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "emulator/base/time.h"
#include "emulator/sim/fabric.h"

namespace percs {

// How the whole fabric stands between two windows.
struct Standing {
  Time next = kNever;             // earliest event
  Time next_foreground = kNever;  // earliest event that is no background
  WorkLeft left;
  bool whole = true;               // no hub is lost
  bool has_background = false;     // of its events some keep no run from ending (rule 6)
  bool commands_to_come = false;   // commands at known times, or on their way to their hubs
  bool programs_expected = false;  // programs outside are attached, or are to attach
  bool programs_owe = false;       // virtual time waits for their next calls
  bool kept_open = false;          // a run that is done takes more commands
  bool faults_wait = false;  // only faults that begin or end later are left, and no time passes
                             // for those alone
};

enum class WindowDecision : std::uint8_t {
  kOpen,
  kHeld,        // until programs outside have acted
  kIdle,        // until a command or a program comes
  kFaultsWait,  // likewise; only faults are left
  kStopped,     // the scenario's end is reached
  kDone,
  kDeadlock,
};

class WindowPolicy {
 public:
  // `stop_at`: virtual time at which the run ends, 0 for never.
  WindowPolicy(Time stop_at, Time stall_limit) : stop_at_(stop_at), stall_limit_(stall_limit) {}

  // `flits_moved` is the sum over all links since the start. It is asked only every `stall_limit`.
  WindowDecision Decide(const Standing& standing, absl::FunctionRef<std::uint64_t()> flits_moved);
  // The next window ends here at the latest, so that what is found then does not depend on how far
  // windows reach: all before it has happened and nothing after it.
  Time next_look() const { return next_check_; }

 private:
  // Nothing has moved for `stall_limit`, and for one and the same reason at both ends of it:
  // packets are resident, or only the clock continues. Timers may still run.
  bool Stalled(const Standing& standing, absl::FunctionRef<std::uint64_t()> flits_moved);

  const Time stop_at_, stall_limit_;
  Time next_check_ = 0;
  std::uint64_t flits_ = 0;
  bool resident_ = false, idle_ = false;  // at the last check
};

}  // namespace percs
