// Credits of one output VC: those that exist, and announced ones that will exist at known times.
#pragma once

#include <algorithm>

#include "emulator/base/check.h"
#include "emulator/base/ring.h"
#include "emulator/base/time.h"

namespace percs {

class CreditCounter {
 public:
  void Reset(int credits) {
    credits_ = credits;
    pending_.clear();
  }
  // Link down: nothing of an older generation may ever count.
  void Drop(std::uint32_t generation) {
    credits_ = 0;
    while (!pending_.empty() && pending_.front().generation < generation) pending_.pop_front();
  }
  void Announce(Time start, Time spacing, int count, std::uint32_t generation) {
    pending_.push_back({start, spacing, count, generation});
  }
  // Credits that exist at t.
  int Available(Time t) {
    while (!pending_.empty() && pending_.front().start <= t) {
      Run& run = pending_.front();
      if (run.start + (run.count - 1) * run.spacing <= t) {
        credits_ += run.count;
        pending_.pop_front();
        continue;
      }
      const int matured = static_cast<int>((t - run.start) / run.spacing) + 1;
      credits_ += matured;
      run.start += matured * run.spacing;
      run.count -= matured;
      run.known = true;
      break;
    }
    return credits_;
  }
  // Largest m <= wanted such that for every i < m at least i + 1 credits exist by t + i * spacing, out of
  // those announced by t. REQUIRES: Available(t) was called and is >= 1.
  int Certain(Time t, Time spacing, int wanted) const {
    int m = std::min(credits_, wanted);
    if (m == wanted || pending_.empty()) return m;
    const Run& run = pending_.front();  // only the front run can have begun to arrive
    if (!run.known) return m;
    for (int i = 0; m < wanted && i < run.count && run.start + i * run.spacing <= t + m * spacing; ++i) ++m;
    return m;
  }
  void Take(int count) {
    const int existing = std::min(count, credits_);
    credits_ -= existing;
    count -= existing;
    if (count == 0) return;
    Run& run = pending_.front();
    PERCS_CHECK(run.known && run.count >= count);
    run.start += count * run.spacing;
    run.count -= count;
    if (run.count == 0) pending_.pop_front();
  }
  // Time of the next credit that does not exist yet, kNever if none is announced or under way.
  Time Next() const { return pending_.empty() ? kNever : pending_.front().start; }
  // Everything that exists or is under way (for the check at the end of a run).
  int Total() const {
    int total = credits_;
    for (std::size_t i = 0; i < pending_.size(); ++i) total += pending_[i].count;
    return total;
  }

 private:
  struct Run {
    Time start = 0, spacing = 0;
    int count = 0;
    std::uint32_t generation = 0;
    bool known = false;  // its first credit has arrived, which announces the others
  };
  Ring<Run> pending_;
  int credits_ = 0;
};

}  // namespace percs
