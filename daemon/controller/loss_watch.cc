#include "daemon/controller/loss_watch.h"

#include <utility>

#include "fmt/format.h"

namespace percs {
namespace {

constexpr std::chrono::milliseconds kLookEvery(100);

}  // namespace

std::chrono::milliseconds LossWatch::Counted(std::chrono::nanoseconds between) {
  if (between > 2 * kLookEvery) return std::chrono::milliseconds(0);
  return std::chrono::duration_cast<std::chrono::milliseconds>(between);
}

std::optional<std::chrono::milliseconds> LossWatch::Patience(const FabricRun* run) const {
  if (run == nullptr || run->ended()) return lost_after_;
  if (deadline_) return deadline_;
  if (run->pace().pacing().live) return kLiveDeadline;
  return std::nullopt;
}

void LossWatch::Start(std::function<bool(std::uint32_t)> awaited,
                      std::function<void(std::uint32_t)> ask,
                      std::function<void(std::uint32_t, const std::string&)> lose,
                      std::uint32_t places, std::function<const FabricRun*()> run) {
  awaited_ = std::move(awaited);
  ask_ = std::move(ask);
  lose_ = std::move(lose);
  run_ = std::move(run);
  silent_.resize(places);
  Look();
}

void LossWatch::Look() {
  const Clock::time_point now = Clock::now();
  const std::chrono::milliseconds passed = Counted(now - looked_);
  looked_ = now;
  timer_.Set(kLookEvery, [this] { Look(); });
  const auto patience = Patience(run_());
  for (std::uint32_t place = 0; place < silent_.size(); ++place) {
    Silence& silence = silent_[place];
    if (!patience || !awaited_(place)) {
      silence = {};
      continue;
    }
    silence.time += passed;
    if (!std::exchange(silence.asked, true)) ask_(place);
    if (silence.time < *patience) continue;
    const std::string why = fmt::format("it has not answered for {:.1f} s",
                                        static_cast<double>(silence.time.count()) / 1000);
    silence = {};
    lose_(place, why);
  }
}

}  // namespace percs
