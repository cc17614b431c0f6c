// The event queue of one partition: a timing wheel for the near future, a heap beyond it. Events of one
// instant leave in the order of their key (class, port, VC, detail), never in order of insertion.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "emulator/base/check.h"
#include "emulator/base/time.h"

namespace percs {

// Order of events of the same instant (docs/semantics.md rule 2). Arbitration has no events of its own:
// it runs after the last event below kHfi of an instant.
enum class EventClass : std::uint8_t {
  kCommand = 0, kEpoch = 1, kLink = 2, kCredit = 3, kFlit = 4, kTimer = 5, kArbitration = 6, kHfi = 7,
};

struct EventKey {
  std::uint64_t value = 0;
  EventKey() = default;
  constexpr EventKey(EventClass c, int port, int vc, std::uint64_t detail)
      : value((static_cast<std::uint64_t>(c) << 56) | (static_cast<std::uint64_t>(port) << 48) |
              (static_cast<std::uint64_t>(vc) << 40) | (detail & 0xffffffffffull)) {}
  EventClass event_class() const { return static_cast<EventClass>(value >> 56); }
  int port() const { return static_cast<int>((value >> 48) & 0xff); }
  int vc() const { return static_cast<int>((value >> 40) & 0xff); }
  std::uint64_t detail() const { return value & 0xffffffffffull; }
};

struct Event {
  Time time = 0;
  EventKey key;
  std::uint64_t data = 0;
};

class EventQueue {
 public:
  EventQueue() : heads_(kBuckets, kNil) {}

  bool empty() const { return wheel_size_ == 0 && heap_.empty(); }
  // Time of the earliest event, kNever if none.
  Time next_time() const { return next_; }
  std::uint64_t next_key() const { return next_key_; }

  void Push(Time time, EventKey key, std::uint64_t data) {
    if (time < next_ || (time == next_ && key.value < next_key_)) {
      next_ = time;
      next_key_ = key.value;
    }
    const std::int64_t slot = time >> kShift;
    if (slot >= base_ + kBuckets || slot < base_) {
      heap_.push_back({time, key, data});
      std::push_heap(heap_.begin(), heap_.end(), Later);
      return;
    }
    const std::uint32_t node = Allocate();
    nodes_[node].event = {time, key, data};
    std::uint32_t* link = &heads_[static_cast<std::size_t>(slot & (kBuckets - 1))];
    const std::uint32_t bucket = static_cast<std::uint32_t>(slot & (kBuckets - 1));
    occupied_[bucket >> 6] |= std::uint64_t{1} << (bucket & 63);
    while (*link != kNil && !Earlier(time, key, nodes_[*link].event)) link = &nodes_[*link].next;
    nodes_[node].next = *link;
    *link = node;
    ++wheel_size_;
  }

  // REQUIRES: !empty().
  Event Pop() {
    Event event;
    const std::uint32_t bucket = FirstBucket();
    if (bucket == kNil || (!heap_.empty() && !Earlier2(nodes_[heads_[bucket]].event, heap_.front()))) {
      event = heap_.front();
      std::pop_heap(heap_.begin(), heap_.end(), Later);
      heap_.pop_back();
    } else {
      const std::uint32_t node = heads_[bucket];
      event = nodes_[node].event;
      heads_[bucket] = nodes_[node].next;
      if (heads_[bucket] == kNil) occupied_[bucket >> 6] &= ~(std::uint64_t{1} << (bucket & 63));
      nodes_[node].next = free_;
      free_ = node;
      --wheel_size_;
    }
    base_ = event.time >> kShift;
    Refresh();
    return event;
  }

 private:
  static constexpr int kShift = 10;           // 1,024 ps per bucket
  static constexpr std::int64_t kBuckets = 512;  // 0.5 us ahead: a packet on LL, LR or D fits
  static constexpr std::uint32_t kNil = 0xffffffffu;
  struct Node {
    Event event;
    std::uint32_t next;
  };

  static bool Earlier(Time time, EventKey key, const Event& other) {
    return time != other.time ? time < other.time : key.value < other.key.value;
  }
  static bool Earlier2(const Event& a, const Event& b) { return Earlier(a.time, a.key, b); }
  static bool Later(const Event& a, const Event& b) { return Earlier(b.time, b.key, a); }

  std::uint32_t Allocate() {
    if (free_ == kNil) {
      nodes_.push_back({});
      return static_cast<std::uint32_t>(nodes_.size() - 1);
    }
    const std::uint32_t node = free_;
    free_ = nodes_[node].next;
    return node;
  }
  // First occupied bucket at or after base_, cyclically; every wheel event lies within one turn.
  std::uint32_t FirstBucket() const {
    if (wheel_size_ == 0) return kNil;
    constexpr int kWords = kBuckets / 64;
    const std::uint32_t start = static_cast<std::uint32_t>(base_ & (kBuckets - 1));
    std::uint32_t word = start >> 6;
    std::uint64_t bits = occupied_[word] & (~std::uint64_t{0} << (start & 63));
    for (int i = 0; i <= kWords; ++i) {
      if (bits) return (word << 6) | static_cast<std::uint32_t>(std::countr_zero(bits));
      word = (word + 1) & (kWords - 1);
      bits = occupied_[word];
    }
    return kNil;
  }
  void Refresh() {
    const std::uint32_t bucket = FirstBucket();
    const Event* first = bucket == kNil ? nullptr : &nodes_[heads_[bucket]].event;
    if (!heap_.empty() && (!first || Earlier2(heap_.front(), *first))) first = &heap_.front();
    next_ = first ? first->time : kNever;
    next_key_ = first ? first->key.value : 0;
  }

  std::vector<std::uint32_t> heads_;
  std::uint64_t occupied_[kBuckets / 64] = {};
  std::vector<Node> nodes_;
  std::uint32_t free_ = kNil;
  std::uint32_t wheel_size_ = 0;
  std::int64_t base_ = 0;  // bucket number of the last event taken
  Time next_ = kNever;
  std::uint64_t next_key_ = 0;
  std::vector<Event> heap_;
};

}  // namespace percs
