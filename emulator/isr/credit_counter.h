// Credits of one output VC: those that exist, and announced ones that will exist at known times.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <memory>

#include "emulator/base/check.h"
#include "emulator/base/prefetch.h"
#include "emulator/base/time.h"

namespace percs {

class CreditCounter {
 public:
  void Reset(int credits) {
    PERCS_CHECK(credits >= 0);
    credits_ = credits;
    room_ = capacity();
    Begin(room_);
  }
  // Link down: nothing of an older generation may ever count.
  void Drop(std::uint32_t generation);
  // There is no room for an announcement.
  bool full() const { return room_ == 0; }
  // Counts what exists by now, and grows if that gives little room: the more are under way, the
  // less often they are looked at. `now` is not after any time that will be asked about.
  void MakeRoom(Time now);
  // REQUIRES: !full().
  void Announce(Time start, Time spacing, int count, std::uint32_t generation) {
    PERCS_CHECK(count > 0 && count <= kRunCreditsMax);
    PERCS_CHECK(!full());
    runs_[--room_] = {start, spacing, generation, static_cast<std::uint16_t>(count), false};
    next_ = std::min(next_, start);
  }
  // Credits that exist, without those announced and not looked at since.
  int counted() const { return credits_; }
  // Whether a credit exists at t. Announced ones are looked at only when none is left of those
  // counted.
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
  // Time of the next credit that does not exist yet, kNever if none is announced or under way.
  // REQUIRES: !Any(t).
  Time Next() const { return next_; }
  // Has the place of the next announcement fetched into the cache.
  void FetchNext() const { FetchLine(runs_.get() + room_ - (full() ? 0 : 1)); }
  // Has what TakeCertain will look at fetched into the cache.
  void FetchFor(int wanted) const {
    if (credits_ >= wanted) return;
    constexpr std::ptrdiff_t kRunsPerLine = 2, kLinesMax = 5;
    const Run* const first = runs_.get() + room_;
    const Run* const end = runs_.get() + end_;
    const Run* const last = first + std::min(end - first, kLinesMax * kRunsPerLine);
    for (const Run* run = first; run < last; run += kRunsPerLine) FetchLine(run);
    FetchLine(count() > 0 ? end - 1 : end);
  }
  // Everything that exists or is under way (for the check at the end of a run).
  int Total() const {
    int total = credits_;
    for (const Run& run : *this) total += run.count;
    return total;
  }

 private:
  static constexpr std::uint32_t kRunsAtFirst = 2;  // in one cache line
  // More announcements than this are not a link's: faults change it far less often in a window.
  static constexpr int kRunsBits = 20, kSortedBits = 7;
  static constexpr std::uint32_t kRunsMax = 1u << (kRunsBits - 1);
  static constexpr std::uint32_t kSortedMax = (1u << kSortedBits) - 1;
  static constexpr int kRunCreditsMax = 0xffff;  // a buffer has 1,024 slots at most
  struct Run {
    Time start = 0, spacing = 0;
    std::uint32_t generation = 0;
    std::uint16_t count = 0;
    bool known = false;  // its first credit has arrived, which announced the others
  };
  using Iterator = std::reverse_iterator<Run*>;
  using ConstIterator = std::reverse_iterator<const Run*>;
  Iterator begin() { return Iterator(runs_.get() + end_); }
  Iterator end() { return Iterator(runs_.get() + room_); }
  ConstIterator begin() const { return ConstIterator(runs_.get() + end_); }
  ConstIterator end() const { return ConstIterator(runs_.get() + room_); }
  // TakeCertain when those counted are not enough.
  int TakeAnnounced(Time t, Time spacing, int wanted);
  // Counts the announced credits that exist at t.
  void Mature(Time t) {
    if (t >= next_) MatureFirst(t);
  }
  void MatureFirst(Time t);
  // Brings those announced since into the order of their starts: an announcement looks at no other
  // one, which is seldom in the cache.
  void Sort() {
    if (count() > 1 && sorted_ != count()) SortAnnounced();
  }
  void SortAnnounced();
  // The run begins later now: it goes behind those that begin earlier. REQUIRES: they are in order.
  void Settle(Iterator run);
  // Those from `end` on are over, the others are in order.
  void Begin(std::uint32_t end) {
    if (end == room_) end = room_ = capacity();
    end_ = end & (kRunsMax | (kRunsMax - 1));
    sorted_ = std::min(count(), kSortedMax) & kSortedMax;
    next_ = count() > 0 ? begin()->start : kNever;
  }
  std::uint32_t count() const { return end_ - room_; }
  std::uint32_t capacity() const { return (1u << capacity_bits_) & ~1u; }

  // A large machine has three million of these: no byte more than needed.
  // From room_ on, the last announced one first. Seen from the end, which is how begin() and end()
  // see them, at least the first `sorted_` are in the order of their starts.
  std::unique_ptr<Run[]> runs_;
  Time next_ = kNever;
  int credits_ = 0;
  std::uint32_t room_ = 0;
  std::uint32_t end_ : kRunsBits = 0;
  std::uint32_t capacity_bits_ : 32 - kRunsBits - kSortedBits = 0;  // 0: none yet
  std::uint32_t sorted_ : kSortedBits = 0;
};

}  // namespace percs
