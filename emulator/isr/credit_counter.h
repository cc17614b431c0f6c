// Credits of one output VC: those that exist, and announced ones that will exist at known times.
#pragma once

#include <algorithm>
#include <vector>

#include "emulator/base/time.h"

namespace percs {

class CreditCounter {
 public:
  void Reset(int credits) {
    credits_ = credits;
    runs_.clear();
    next_ = kNever;
  }
  // Link down: nothing of an older generation may ever count.
  void Drop(std::uint32_t generation) {
    credits_ = 0;
    std::erase_if(runs_, [generation](const Run& run) { return run.generation < generation; });
    Refresh();
  }
  // `now` is not after any time that will be asked about.
  void Announce(Time now, Time start, Time spacing, int count, std::uint32_t generation) {
    if (runs_.size() >= kRunsKept) Mature(now);
    runs_.push_back({start, spacing, count, generation, false});
    next_ = std::min(next_, start);
  }
  // Credits that exist, without those announced and not looked at since.
  int counted() const { return credits_; }
  // Whether a credit exists at t. Announced ones are looked at only when none is left of those counted.
  bool Any(Time t) {
    if (credits_ == 0) Mature(t);
    return credits_ > 0;
  }
  // Takes the largest m <= wanted credits such that for every i < m at least i + 1 exist by t + i *
  // spacing, out of those announced by t.
  int TakeCertain(Time t, Time spacing, int wanted) {
    if (credits_ < wanted) return TakeAnnounced(t, spacing, wanted);
    credits_ -= wanted;
    return wanted;
  }
  // Time of the next credit that does not exist yet, kNever if none is announced or under way. REQUIRES:
  // !Any(t).
  Time Next() const { return next_; }
  // Everything that exists or is under way (for the check at the end of a run).
  int Total() const {
    int total = credits_;
    for (const Run& run : runs_) total += run.count;
    return total;
  }

 private:
  // With more, what exists by now is counted: they shall fit in few cache lines.
  static constexpr std::size_t kRunsKept = 8;
  struct Run {
    Time start = 0, spacing = 0;
    int count = 0;
    std::uint32_t generation = 0;
    bool known = false;  // its first credit has arrived, which announced the others
  };
  // TakeCertain when those counted are not enough.
  [[gnu::noinline]] int TakeAnnounced(Time t, Time spacing, int wanted) {
    Mature(t);
    int taken = std::min(credits_, wanted);
    credits_ -= taken;
    if (taken == wanted || runs_.empty()) return taken;
    while (taken < wanted) {
      std::size_t earliest = runs_.size();
      Time others = kNever;  // first start of another run
      for (std::size_t i = 0; i < runs_.size(); ++i) {
        if (!runs_[i].known) continue;
        if (earliest == runs_.size() || runs_[i].start < runs_[earliest].start) {
          if (earliest != runs_.size()) others = runs_[earliest].start;
          earliest = i;
        } else {
          others = std::min(others, runs_[i].start);
        }
      }
      if (earliest == runs_.size() || runs_[earliest].start > t + taken * spacing) break;
      Run& run = runs_[earliest];
      do {
        run.start += run.spacing;
        --run.count;
        ++taken;
      } while (taken < wanted && run.count > 0 && run.start <= others && run.start <= t + taken * spacing);
      if (run.count == 0) Remove(earliest);
    }
    Refresh();
    return taken;
  }
  // Counts the announced credits that exist at t.
  [[gnu::noinline]] void Mature(Time t) {
    if (t < next_) return;
    next_ = kNever;
    for (std::size_t i = 0; i < runs_.size();) {
      Run& run = runs_[i];
      if (run.start <= t) {
        if (run.start + (run.count - 1) * run.spacing <= t) {
          credits_ += run.count;
          Remove(i);
          continue;
        }
        const int matured = static_cast<int>((t - run.start) / run.spacing) + 1;
        credits_ += matured;
        run.start += matured * run.spacing;
        run.count -= matured;
        run.known = true;
      }
      next_ = std::min(next_, run.start);
      ++i;
    }
  }
  void Remove(std::size_t i) {
    runs_[i] = runs_.back();
    runs_.pop_back();
  }
  void Refresh() {
    next_ = kNever;
    for (const Run& run : runs_) next_ = std::min(next_, run.start);
  }

  std::vector<Run> runs_;  // in no order; keeps its capacity
  Time next_ = kNever;
  int credits_ = 0;
};

}  // namespace percs
