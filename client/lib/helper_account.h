// Whether it pays to share work with helper threads, judged by what that has saved and cost so far.
// On a machine that others use too, a helper may be taken off its core in the middle of its part,
// and the caller waits for it; without such a judgement two threads can be much slower than one.
#pragma once

#include <algorithm>
#include <cstdint>

namespace percs {

// PROMISE: whatever helpers do, what sharing cost beyond what it saved stays below 1/kShare of the
// work, plus kReserve, plus the one round that spent the reserve. While sharing does not pay, it is
// tried again less and less often: it also has costs that are not measured, such as cold caches.
class HelperAccount {
 public:
  static constexpr std::int64_t kShare = 16, kShareLeast = 512;
  static constexpr std::int64_t kReserve = 1'000'000;  // ns
  // So much of what sharing gained pays for a helper that loses its core, before sharing pauses. It
  // is not more, so that a machine that becomes busy is noticed soon.
  static constexpr std::int64_t kGainedMost = 20 * kReserve;

  // Whether the next round should be shared.
  bool share() const { return share_; }
  // The caller worked for `worked` ns of a round of `turns` turns; helpers spared it `saved` ns of
  // work, and handing over and waiting took `lost` ns.
  void Shared(int turns, std::int64_t worked, std::int64_t saved, std::int64_t lost) {
    // A helper that seems to have worked for long may have been off its core, like the caller.
    gained_ = std::min(gained_ + std::min(saved, turns * kReserve / 4) - lost, kGainedMost);
    if (gained_ > kReserve) part_ = kShare;
    Add((worked + saved) / part_ + saved - lost);
    if (balance_ >= 0) return;
    share_ = false;
    if (gained_ < 0) part_ = std::min(2 * part_, kShareLeast);
  }
  // The caller did all of a round.
  void Alone(std::int64_t worked) {
    Add(worked / part_);
    if (share_ || balance_ < kReserve) return;
    share_ = true;
    gained_ = 0;
  }

 private:
  void Add(std::int64_t amount) {
    const std::int64_t most = std::max(kReserve, gained_);
    balance_ = amount < most - balance_ ? balance_ + amount : most;
  }

  std::int64_t balance_ = kReserve;
  std::int64_t gained_ = 0;     // since sharing began, at most kGainedMost
  std::int64_t part_ = kShare;  // at most 1/kShare of the work may be lost
  bool share_ = true;
};

}  // namespace percs
