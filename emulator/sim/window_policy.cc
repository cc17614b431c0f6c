#include "emulator/sim/window_policy.h"

#include <utility>

namespace percs {
namespace {

// No event is left but those that keep the clock.
bool Quiet(const Standing& standing) {
  return standing.next_foreground == kNever && (standing.next == kNever || standing.has_background);
}

// The work of lost hubs stays unfinished: such a run is settled when no event is left.
bool Settled(const Standing& standing) {
  return !standing.commands_to_come && (standing.whole ? standing.left.done() : Quiet(standing));
}

}  // namespace

WindowDecision WindowPolicy::Decide(const Standing& standing,
                                    absl::FunctionRef<std::uint64_t()> flits_moved) {
  if (standing.programs_owe) return WindowDecision::kHeld;
  const bool settled = Settled(standing);
  if (settled && !standing.programs_expected && !standing.kept_open) return WindowDecision::kDone;
  if (stop_at_ > 0 && standing.next >= stop_at_) return WindowDecision::kStopped;
  // The clock of an idle fabric is paused. Waiting for a program is no deadlock.
  const bool waits = settled || (standing.programs_expected && !standing.commands_to_come);
  if (waits && Quiet(standing)) return WindowDecision::kIdle;
  if (standing.faults_wait) return WindowDecision::kFaultsWait;
  if (standing.next == kNever) return WindowDecision::kDeadlock;
  // Looked at with lost hubs, too, for the next look.
  if (Stalled(standing, flits_moved) && standing.whole) return WindowDecision::kDeadlock;
  return WindowDecision::kOpen;
}

bool WindowPolicy::Stalled(const Standing& standing,
                           absl::FunctionRef<std::uint64_t()> flits_moved) {
  if (standing.next < next_check_) return false;
  next_check_ = standing.next + stall_limit_;
  const std::uint64_t flits = flits_moved();
  const bool moved = std::exchange(flits_, flits) != flits;
  const bool resident = standing.left.resident_packets > 0;
  const bool idle = standing.next_foreground == kNever;
  const bool still_resident = std::exchange(resident_, resident) && resident;
  const bool still_idle = std::exchange(idle_, idle) && idle;
  return !moved && (still_resident || still_idle);
}

}  // namespace percs
