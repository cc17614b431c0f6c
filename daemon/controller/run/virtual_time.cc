#include "daemon/controller/run/virtual_time.h"

#include <algorithm>
#include <utility>

namespace percs {

void VirtualTime::Start(Clock::time_point now) {
  started_ = now;
  pace_.Start(now, master_.now(), master_.windows());
}

double VirtualTime::WallSeconds(Clock::time_point now) const {
  if (!started_) return 0;
  return std::chrono::duration<double>(ended_.value_or(now) - *started_).count();
}

Time VirtualTime::Standstill(Phase phase, Clock::time_point now) const {
  // No window was open when virtual time reached the pause.
  if (phase == Phase::kPaused && pause_at_) return std::max(master_.now(), *pause_at_);
  const bool between_windows = phase == Phase::kMoving || phase == Phase::kPaused;
  if (!started_ || !pace_.paced() || !between_windows) return master_.now();
  if (faults_hold_at_) return *faults_hold_at_;
  if (programs_hold_at_) return std::max(master_.now(), *programs_hold_at_);
  // What happens next is known only when all have reported, and nothing is to be taken again.
  if (master_.in_span()) return master_.now();
  // Between windows there are no events, so virtual time has passed with the wall clock.
  return std::max(master_.now(),
                  std::min({pace_.Allowed(now), master_.next(), pause_at_.value_or(kNever)}));
}

Time VirtualTime::Now(Phase phase, Clock::time_point now) const {
  return std::max(Standstill(phase, now), not_before_);
}

Time VirtualTime::Said(Phase phase, Clock::time_point now) const {
  return said_ = std::max(said_, Now(phase, now));
}

void VirtualTime::NotBefore(Time at) { not_before_ = std::max(not_before_, at); }

void VirtualTime::LeavePause(Phase phase, Clock::time_point now) {
  if (pause_at_) pace_.Resume(now, Said(phase, now));
  // Pending commands take effect here, not at the next pause.
  if (phase == Phase::kPaused && pause_at_) NotBefore(*pause_at_);
}

Time VirtualTime::SetPace(Time pace, Phase phase, Clock::time_point now) {
  const Time at = Said(phase, now);
  NotBefore(at);  // without a pace it would be at the last window again
  pace_.Set(pace, now, at);
  return at;
}

void VirtualTime::HoldForFaults(Phase phase, Clock::time_point now) {
  if (!faults_hold_at_) faults_hold_at_ = Said(phase, now);
}

void VirtualTime::ReleaseFaults(Clock::time_point now) {
  if (faults_hold_at_) pace_.Resume(now, *std::exchange(faults_hold_at_, std::nullopt));
}

void VirtualTime::HoldForPrograms(bool held, Clock::time_point now) {
  if (held == programs_hold_at_.has_value()) return;
  if (held) {
    // Not by how much of its pace has passed since the last window.
    programs_hold_at_ = faults_hold_at_.value_or(master_.now());
    return;
  }
  if (started_) pace_.Resume(now, *programs_hold_at_);
  released_at_ = *std::exchange(programs_hold_at_, std::nullopt);
}

Time VirtualTime::TakeReleased(Phase phase, Clock::time_point now) {
  const auto released = std::exchange(released_at_, std::nullopt);
  return released ? std::max({*released, master_.now(), not_before_}) : Now(phase, now);
}

}  // namespace percs
