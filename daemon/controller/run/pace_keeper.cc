#include "daemon/controller/run/pace_keeper.h"

#include <algorithm>

namespace percs {
namespace {

double Seconds(PaceKeeper::Clock::duration d) { return std::chrono::duration<double>(d).count(); }

}  // namespace

void PaceKeeper::Start(Clock::time_point now, Time virtual_time, std::uint64_t windows) {
  start_ = sampled_ = now;
  first_virtual_ = sampled_virtual_ = virtual_time;
  first_window_ = sampled_windows_ = windows;
}

void PaceKeeper::Set(Time pace, Clock::time_point now, Time virtual_time) {
  pacing_.pace = pace;
  Resume(now, virtual_time);
}

void PaceKeeper::Resume(Clock::time_point now, Time virtual_time) {
  if (!paced()) return;
  const std::chrono::duration<double> passed(static_cast<double>(virtual_time) /
                                             static_cast<double>(pacing_.pace));
  start_ = now - std::chrono::duration_cast<Clock::duration>(passed);
}

Time PaceKeeper::Allowed(Clock::time_point now) const {
  if (!paced()) return kNever;
  const double allowed = Seconds(now - start_) * static_cast<double>(pacing_.pace);
  return allowed < static_cast<double>(kNever) ? static_cast<Time>(allowed) : kNever;
}

std::chrono::nanoseconds PaceKeeper::WaitFor(Time t, Clock::time_point now) const {
  const Time missing = t - Allowed(now);
  if (!paced() || missing <= 0) return std::chrono::nanoseconds(0);
  const double seconds = static_cast<double>(missing) / static_cast<double>(pacing_.pace);
  // An hour at most: waiting is looked at again anyway.
  return std::chrono::nanoseconds(static_cast<std::int64_t>(std::min(seconds, 3600.0) * 1e9) + 1);
}

void PaceKeeper::Measure(Clock::time_point now, Time virtual_time, std::uint64_t windows) {
  const double seconds = Seconds(now - sampled_);
  if (seconds < 1.0 && (windows_per_second_ > 0 || seconds < 0.1)) return;
  windows_per_second_ = static_cast<double>(windows - sampled_windows_) / seconds;
  pace_reached_ = static_cast<double>(virtual_time - sampled_virtual_) / seconds;
  sampled_ = now;
  sampled_virtual_ = virtual_time;
  sampled_windows_ = windows;
}

double PaceKeeper::BehindSeconds(Clock::time_point now, Time virtual_time) const {
  if (!paced()) return 0;
  const Time behind = Allowed(now) - virtual_time;
  return std::max(0.0, static_cast<double>(behind) / static_cast<double>(pacing_.pace));
}

}  // namespace percs
