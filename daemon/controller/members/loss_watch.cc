#include "daemon/controller/members/loss_watch.h"

#include <algorithm>
#include <utility>

#include "fmt/format.h"

namespace percs {

double WallSeconds(LossWatch::Wall time) { return static_cast<double>(time.count()) / 1000; }

void LossWatch::Look(Clock::time_point now, const Rules& rules) {
  // A pause of this process says nothing about others. Messages that arrived meanwhile are read
  // after this look, so the next look decides, even if it is late itself. Nobody could connect.
  const Wall since = std::chrono::duration_cast<Wall>(now - looked_.value_or(now));
  const Wall passed = rules.can_decide ? std::min(since, kLookEvery) : Wall(0);
  to_connect_ = std::max(to_connect_ - passed, Wall(0));
  const bool late = since > kLateAfter;
  Rules at_this_look = rules;
  if (late && !late_) {
    at_this_look.can_decide = false;
    to_connect_ = std::min(to_connect_ + since, kToConnect);
  }
  late_ = late;
  looked_ = now;
  for (std::uint32_t place = 0; place < silent_.size(); ++place) {
    LookAt(place, passed, at_this_look);
  }
}

void LossWatch::LookAt(std::uint32_t place, Wall passed, const Rules& rules) {
  const Place seen = port_->See(place);
  State& state = silent_[place];
  // A question without an answer is silence also when nothing else is awaited any more.
  const bool asked = seen.connected && state.asked;
  if (!seen.taken || (seen.connected && !seen.awaited && !asked)) {
    state = {};
    return;
  }
  // Silence counts from the time when it was first noticed, and again from the time when the
  // connection is back.
  if (!state.silent || state.connected != seen.connected) {
    state = {};
    passed = Wall(0);
  }
  state.silent = true;
  state.connected = seen.connected;
  state.time += passed;
  state.deadline = seen.connected ? rules.without_answer : rules.without_connection;
  if (!rules.can_decide) return;
  if (seen.connected && state.time >= kLookEvery && !std::exchange(state.asked, true)) {
    port_->Ask(place);
  }
  const bool may_come = !seen.connected && to_connect_ > Wall(0);
  const bool over = state.deadline && state.time >= *state.deadline && !may_come;
  if (!(over && (seen.awaited || !seen.connected)) && !seen.gone) return;
  const char* what = seen.connected ? "it has not answered" : "it has had no connection";
  const std::string why = seen.gone ? std::string("its process has exited")
                                    : fmt::format("{} for {:.1f} s", what, WallSeconds(state.time));
  state = {};
  port_->Lose(place, why);
}

std::optional<LossWatch::Silence> LossWatch::Missing(std::uint32_t place) const {
  const State& state = silent_[place];
  if (!state.silent || state.time < kMissingAfter) return std::nullopt;
  Silence silence{state.time, state.connected, std::nullopt};
  if (state.deadline) {
    const Wall at_least = state.connected ? Wall(0) : to_connect_;
    silence.left = std::max(*state.deadline - state.time, at_least);
  }
  return silence;
}

std::string DescribeSilence(const LossWatch::Silence& silence) {
  const std::string since = fmt::format(
      "{} for {:.1f} s", silence.connected ? "has not answered" : "has had no connection",
      WallSeconds(silence.time));
  return silence.left
             ? fmt::format("{}; it is lost in {:.1f} s", since, WallSeconds(*silence.left))
             : fmt::format("{}; without --loss-deadline it is awaited without limit", since);
}

}  // namespace percs
