// What a commitment seldom needs of credits: those that are announced.
#include "emulator/isr/credit_counter.h"

#include <bit>
#include <utility>

namespace percs {

void CreditCounter::Drop(std::uint32_t generation) {
  credits_ = 0;
  Sort();
  const Run* end = std::remove_if(
      begin(), this->end(), [generation](const Run& run) { return run.generation < generation; });
  count_ = static_cast<std::uint32_t>(end - begin()) & (kRunsMax | (kRunsMax - 1));
  Refresh();
}

void CreditCounter::Sort() {
  for (Run* next = end() - unsorted_; next != end(); ++next) {
    const Run run = *next;
    Run* place = next;
    for (; place != begin() && place[-1].start > run.start; --place) *place = place[-1];
    *place = run;
  }
  unsorted_ = 0;
}

void CreditCounter::MakeRoom(Time now) {
  Mature(now);
  if (!full()) return;
  if (2 * count_ < capacity()) {
    std::copy(begin(), end(), runs_.get());
  } else {
    const std::uint32_t capacity = std::max(kRunsAtFirst, 2 * this->capacity());
    PERCS_CHECK(capacity > count_ && capacity <= kRunsMax);
    auto more = std::make_unique<Run[]>(capacity);
    std::copy(begin(), end(), more.get());
    runs_ = std::move(more);
    capacity_bits_ = static_cast<std::uint32_t>(std::countr_zero(capacity)) & 0x3f;
  }
  first_ = 0;
}

int CreditCounter::TakeAnnounced(Time t, Time spacing, int wanted) {
  PERCS_CHECK(wanted > 0 && credits_ >= 0);
  Mature(t);
  Sort();
  int taken = std::min(credits_, wanted);
  credits_ -= taken;
  while (taken < wanted) {
    // The known ones that may give any begin before this.
    const Time limit = t + wanted * spacing;
    Run* earliest = begin();
    while (earliest != end() && !earliest->known && earliest->start < limit) ++earliest;
    if (earliest == end() || !earliest->known || earliest->start > t + taken * spacing) break;
    const Run* other = earliest + 1;
    while (other != end() && !other->known && other->start < limit) ++other;
    const Time others = other != end() ? other->start : kNever;
    do {
      earliest->start += earliest->spacing;
      --earliest->count;
      ++taken;
    } while (taken < wanted && earliest->count > 0 && earliest->start <= others &&
             earliest->start <= t + taken * spacing);
    Settle(earliest);
  }
  return taken;
}

void CreditCounter::Mature(Time t) {
  if (t < next_) return;
  Sort();
  while (count_ > 0 && begin()->start <= t) {
    Run& run = *begin();
    int matured = run.count;
    if (run.start + (run.count - 1) * run.spacing > t) {
      matured = static_cast<int>((t - run.start) / run.spacing) + 1;
      run.known = true;
    }
    credits_ += matured;
    run.start += matured * run.spacing;
    run.count = static_cast<std::uint16_t>(run.count - matured);
    Settle(&run);
  }
}

void CreditCounter::Settle(Run* run) {
  if (run->count == 0) {
    for (; run != begin(); --run) *run = run[-1];
    --count_;
    if (count_ > 0) {
      ++first_;
    } else {
      first_ = 0;
    }
  } else {
    for (; run + 1 != end() && run[1].start < run->start; ++run) std::swap(run[0], run[1]);
  }
  Refresh();
}

}  // namespace percs
