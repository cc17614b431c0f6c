// What a commitment seldom needs of credits: those that are announced.
#include "emulator/isr/credit_counter.h"

#include <bit>
#include <utility>

namespace percs {

void CreditCounter::Drop(std::uint32_t generation) {
  credits_ = 0;
  Sort();
  const Iterator end = std::remove_if(
      begin(), this->end(), [generation](const Run& run) { return run.generation < generation; });
  room_ = end_ - static_cast<std::uint32_t>(end - begin());
  Begin(end_);
}

void CreditCounter::SortAnnounced() {
  const Iterator first = begin(), end = this->end();
  for (Iterator next = first + std::max(sorted_ + 0u, 1u); next != end; ++next) {
    if (next[-1].start <= next->start) continue;
    const Run run = *next;
    Iterator place = next;
    for (; place != first && place[-1].start > run.start; --place) *place = place[-1];
    *place = run;
  }
  sorted_ = std::min(count(), kSortedMax) & kSortedMax;
}

void CreditCounter::MakeRoom(Time now) {
  Mature(now);
  if (!full()) return;
  const std::uint32_t count = this->count();
  if (2 * count < capacity()) {
    std::copy(begin(), end(), Iterator(runs_.get() + capacity()));
  } else {
    const std::uint32_t capacity = std::max(kRunsAtFirst, 2 * this->capacity());
    PERCS_CHECK(capacity > count && capacity <= kRunsMax);
    auto more = std::make_unique<Run[]>(capacity);
    std::copy(begin(), end(), Iterator(more.get() + capacity));
    runs_ = std::move(more);
    capacity_bits_ = static_cast<std::uint32_t>(std::countr_zero(capacity)) & 0x1f;
  }
  room_ = capacity() - count;
  end_ = capacity() & (kRunsMax | (kRunsMax - 1));
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
    const Iterator end = this->end();
    Iterator earliest = begin();
    while (earliest != end && !earliest->known && earliest->start < limit) ++earliest;
    if (earliest == end || !earliest->known || earliest->start > t + taken * spacing) break;
    Iterator other = earliest + 1;
    while (other != end && !other->known && other->start < limit) ++other;
    const Time others = other != end ? other->start : kNever;
    int count = 1;
    if (earliest->spacing <= spacing) {  // once in time, always in time
      count = std::min<int>(wanted - taken, earliest->count);
      if (others < earliest->start + (count - 1) * earliest->spacing) count = 1;
    }
    do {
      earliest->start += count * earliest->spacing;
      earliest->count = static_cast<std::uint16_t>(earliest->count - count);
      taken += count;
      count = 1;
    } while (taken < wanted && earliest->count > 0 && earliest->start <= others &&
             earliest->start <= t + taken * spacing);
    const bool over = earliest->count == 0;
    if (over) {
      for (; earliest != begin(); --earliest) *earliest = earliest[-1];
    } else {
      Settle(earliest);
    }
    Begin(end_ - (over ? 1 : 0));
  }
  return taken;
}

void CreditCounter::MatureFirst(Time t) {
  Sort();
  Iterator run = begin();
  const Iterator end = this->end();
  int credits = credits_;
  while (run != end && run->start <= t) {
    if (run->start + (run->count - 1) * run->spacing <= t) {
      credits += run->count;
      ++run;
      continue;
    }
    const int matured = static_cast<int>((t - run->start) / run->spacing) + 1;
    credits += matured;
    run->known = true;
    run->start += matured * run->spacing;
    run->count = static_cast<std::uint16_t>(run->count - matured);
    Settle(run);
  }
  credits_ = credits;
  Begin(end_ - static_cast<std::uint32_t>(run - begin()));
}

void CreditCounter::Settle(Iterator run) {
  for (; run + 1 != end() && run[1].start < run->start; ++run) std::swap(run[0], run[1]);
}

}  // namespace percs
