// What a commitment seldom needs of credits: those that are announced.
#include "emulator/isr/credit_counter.h"

#include <bit>

namespace percs {

void CreditCounter::Drop(std::uint32_t generation) {
  credits_ = 0;
  const Run* end = std::remove_if(
      begin(), this->end(), [generation](const Run& run) { return run.generation < generation; });
  count_ = static_cast<std::uint32_t>(end - begin()) & (kRunsMax | (kRunsMax - 1));
  Refresh();
}

void CreditCounter::MakeRoom(Time now) {
  Mature(now);
  if (2 * count_ < capacity()) return;
  const std::uint32_t capacity = std::max(kRunsAtFirst, 2 * this->capacity());
  PERCS_CHECK(capacity > count_ && capacity <= kRunsMax);
  auto more = std::make_unique<Run[]>(capacity);
  std::copy(begin(), end(), more.get());
  runs_ = std::move(more);
  capacity_bits_ = static_cast<std::uint32_t>(std::countr_zero(capacity)) & 0x3f;
}

int CreditCounter::TakeAnnounced(Time t, Time spacing, int wanted) {
  PERCS_CHECK(wanted > 0 && credits_ >= 0);
  Mature(t);
  int taken = std::min(credits_, wanted);
  credits_ -= taken;
  if (taken == wanted || count_ == 0) return taken;
  while (taken < wanted) {
    std::size_t earliest = count_;
    Time others = kNever;  // first start of another run
    for (std::size_t i = 0; i < count_; ++i) {
      if (!runs_[i].known) continue;
      if (earliest == count_ || runs_[i].start < runs_[earliest].start) {
        if (earliest != count_) others = runs_[earliest].start;
        earliest = i;
      } else {
        others = std::min(others, runs_[i].start);
      }
    }
    if (earliest == count_ || runs_[earliest].start > t + taken * spacing) break;
    Run& run = runs_[earliest];
    do {
      run.start += run.spacing;
      --run.count;
      ++taken;
    } while (taken < wanted && run.count > 0 && run.start <= others &&
             run.start <= t + taken * spacing);
    if (run.count == 0) Remove(earliest);
  }
  Refresh();
  return taken;
}

void CreditCounter::Mature(Time t) {
  if (t < next_) return;
  next_ = kNever;
  for (std::size_t i = 0; i < count_;) {
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
      run.count = static_cast<std::uint16_t>(run.count - matured);
      run.known = true;
    }
    next_ = std::min(next_, run.start);
    ++i;
  }
}

void CreditCounter::Refresh() {
  next_ = kNever;
  for (const Run& run : *this) next_ = std::min(next_, run.start);
}

}  // namespace percs
