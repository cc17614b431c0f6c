// The event queue of one partition: a timing wheel for the near future, a heap beyond it. Events of
// one instant leave in the order of their key (class, port, VC, detail), never in order of
// insertion.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

#include "emulator/base/check.h"
#include "emulator/base/prefetch.h"
#include "emulator/base/time.h"

namespace percs {

// Order of events of the same instant (docs/semantics.md rule 2). Arbitration has no events of its
// own: it runs after the last event below kHfi of an instant.
enum class EventClass : std::uint8_t {
  kCommand = 0,
  kEpoch = 1,
  kLink = 2,
  kCredit = 3,
  kFlit = 4,
  kTimer = 5,
  kArbitration = 6,
  kHfi = 7,
};

struct EventKey {
  std::uint64_t value = 0;
  EventKey() = default;
  constexpr explicit EventKey(std::uint64_t v) : value(v) {}
  constexpr EventKey(EventClass c, int port, int vc, std::uint64_t detail)
      : value((static_cast<std::uint64_t>(c) << 56) | (static_cast<std::uint64_t>(port) << 48) |
              (static_cast<std::uint64_t>(vc) << 40) | (detail & 0xffffffffffull)) {}
  EventClass event_class() const { return static_cast<EventClass>(value >> 56); }
  int port() const { return static_cast<int>((value >> 48) & 0xff); }
  int vc() const { return static_cast<int>((value >> 40) & 0xff); }
  std::uint64_t detail() const { return value & 0xffffffffffull; }
};

// An event names its object by the address; the object outlives it. The one place where pointers
// become numbers.
inline std::uint64_t EventData(const void* object) {
  return reinterpret_cast<std::uint64_t>(object);
}

struct Event {
  Time time = 0;
  EventKey key;
  std::uint64_t data = 0;

  // REQUIRES: data is EventData of one.
  template <typename T>
  T* object() const {
    return reinterpret_cast<T*>(data);
  }
};

// Events of one or several queues, which one thread uses. The hubs of a shard or supernode share
// them: what was freed last, by whichever hub, is still in the cache.
class EventNodes {
 public:
  static constexpr std::uint32_t kNil = 0xffffffffu;
  struct Node {
    Event event;
    std::uint32_t next = kNil;
  };
  Node& operator[](std::uint32_t index) { return nodes_[index]; }
  const Node& operator[](std::uint32_t index) const { return nodes_[index]; }
  // None is left to take.
  bool full() const { return free_count_ == 0; }
  // REQUIRES: !full().
  std::uint32_t Take() { return free_[--free_count_]; }
  void Give(std::uint32_t index) { free_[free_count_++] = index; }
  [[gnu::noinline]] void Grow() {
    const std::size_t size = nodes_.size(), more = std::max<std::size_t>(size, 16);
    PERCS_CHECK(size + more < kNil);
    nodes_.resize(size + more);
    free_.resize(size + more);
    for (std::size_t i = size + more; i-- > size;) Give(static_cast<std::uint32_t>(i));
  }
  // Sorts two lists into one, the first of which is in order already. The second one has its nodes
  // in the reverse order of their pushes, all of which were before those of the first.
  template <typename Later>
  [[gnu::noinline]] std::uint32_t Sort(std::uint32_t sorted, std::uint32_t newest_first,
                                       Later later) {
    std::vector<std::uint32_t> order;
    for (std::uint32_t i = newest_first; i != kNil; i = nodes_[i].next) order.push_back(i);
    std::reverse(order.begin(), order.end());
    for (std::uint32_t i = sorted; i != kNil; i = nodes_[i].next) order.push_back(i);
    std::stable_sort(order.begin(), order.end(), [this, later](std::uint32_t a, std::uint32_t b) {
      return later(nodes_[b].event, nodes_[a].event);
    });
    for (std::size_t i = 0; i < order.size(); ++i) {
      nodes_[order[i]].next = i + 1 < order.size() ? order[i + 1] : kNil;
    }
    return order.front();
  }

 private:
  std::vector<Node> nodes_;
  // Not a list through the nodes: the one to take is seldom in the cache.
  std::vector<std::uint32_t> free_;
  std::size_t free_count_ = 0;
};

class EventQueue {
 public:
  // REQUIRES: `nodes` outlives this.
  explicit EventQueue(EventNodes* nodes) : nodes_(nodes) {}
  bool empty() const { return next_ == kNever; }
  // Time of the earliest event, kNever if none.
  Time next_time() const { return next_; }
  std::uint64_t next_key() const { return next_key_; }

  // What is rare ends in a call, so that the rest saves no registers.
  void Push(Time time, EventKey key, std::uint64_t data) {
    const std::int64_t slot = time >> kShift;
    EventNodes& nodes = *nodes_;
    if (static_cast<std::uint64_t>(slot - base_) >= kBuckets || nodes.full()) [[unlikely]]
      return PushRare({time, key, data});
    const std::uint32_t index = nodes.Take();
    EventNodes::Node& node = nodes[index];
    node.event = {time, key, data};
    const std::uint32_t bucket = Bucket(slot);
    if (Earlier(time, key.value, next_, next_key_)) {
      SetNext({time, key, data});
      state_ &= static_cast<std::uint8_t>(~kNextInHeap);
    }
    std::uint32_t& head = heads_[bucket];
    if (!Marked(bucket)) {  // asked first: the head of the bucket is seldom in the cache
      Mark(bucket);
      node.next = kNil;
      head = index;
      if (slot < first_) BeginAt(slot);
      return;
    }
    if (slot == first_ || slot == first_before_) [[unlikely]]
      return PushFirst(slot, index);
    node.next = head;
    head = index;
  }

  // Calls f(event) for those before `end`, but for some that lie far ahead, in no order.
  template <typename F>
  void ForEachBefore(Time end, F&& f) const {
    ForEachBucketBefore(end, [this, end, &f](std::uint32_t bucket) {
      for (std::uint32_t i = heads_[bucket]; i != kNil; i = (*nodes_)[i].next) {
        const Event& event = (*nodes_)[i].event;
        if (event.time < end) f(event);
      }
    });
  }
  // Calls f(event) for all, in no order.
  template <typename F>
  void ForEach(F&& f) const {
    ForEachBefore(kNever, f);
    for (const Event& event : heap_) f(event);
  }
  // Has what ForEachBefore looks at fetched into the cache: first this, then the rest step by step.
  void FetchHeads(Time end) const {
    ForEachBucketBefore(end, [this](std::uint32_t bucket) { FetchLine(&heads_[bucket]); });
  }
  void FetchFirsts(Time end) const {
    ForEachBucketBefore(end,
                        [this](std::uint32_t bucket) { FetchLine(&(*nodes_)[heads_[bucket]]); });
  }
  void FetchSeconds(Time end) const {
    ForEachBucketBefore(end, [this](std::uint32_t bucket) {
      const std::uint32_t second = (*nodes_)[heads_[bucket]].next;
      if (second != kNil) FetchLine(&(*nodes_)[second]);
    });
  }
  // Has what pushing an event looks at fetched into the cache.
  void Fetch() const {
    FetchLine(this);
    FetchLine(&occupied_[0]);
    FetchLine(&occupied_[kBuckets / 128]);
  }

  // REQUIRES: !empty(). Inlined: the event stays in registers.
  [[gnu::always_inline]] Event Pop() {
    if (state_ != 0) [[unlikely]]
      return PopRare();
    base_ = first_;
    std::uint32_t& head = heads_[Bucket(first_)];
    const std::uint32_t index = head;
    EventNodes& nodes = *nodes_;
    EventNodes::Node& node = nodes[index];
    const Event event = node.event;
    head = node.next;
    nodes.Give(index);
    if (head != kNil) {
      SetNextFetched(nodes[head].event);
    } else if (FindFirst()) {
      Sort();
      SetNextFetched(nodes[heads_[Bucket(first_)]].event);
    } else {
      next_ = kNever;
    }
    if (heap_time_ <= next_) CompareHeap();
    return event;
  }

 private:
  static constexpr int kShift = 9;  // 512 ps per bucket: about one event in each under load
  static constexpr std::uint32_t kBuckets = 1024;  // 0.5 us ahead: a packet on LL, LR or D fits
  static constexpr std::uint32_t kNil = EventNodes::kNil;
  static constexpr int kManyPassed = 32;  // from so many on, a bucket has a crowd

  static std::uint32_t Bucket(std::int64_t slot) {
    return static_cast<std::uint32_t>(slot) & (kBuckets - 1);
  }
  static bool Earlier(Time time, std::uint64_t key, Time other_time, std::uint64_t other_key) {
    return time < other_time || (time == other_time && key < other_key);
  }
  static bool Later(const Event& a, const Event& b) {
    return Earlier(b.time, b.key.value, a.time, a.key.value);
  }

  bool Marked(std::uint32_t bucket) const { return occupied_[bucket >> 6] >> (bucket & 63) & 1; }
  void Mark(std::uint32_t bucket) {
    occupied_[bucket >> 6] |= std::uint64_t{1} << (bucket & 63);
    words_ |= std::uint32_t{1} << (bucket >> 6);
  }
  void SetNext(const Event& event) {
    next_ = event.time;
    next_key_ = event.key.value;
  }
  // What the next event is about, mostly a packet, is on its way from memory while this one is
  // handled.
  void SetNextFetched(const Event& event) {
    SetNext(event);
    FetchLine(event.object<const char>());
    FetchLine(event.object<const char>() + 64);
  }
  // Bucket `first_` has become empty: finds the next one, cyclically; every wheel event lies within
  // one turn. False if the wheel is empty.
  bool FindFirst() {
    const std::uint32_t start = Bucket(first_);
    std::uint32_t word = start >> 6;
    std::uint64_t bits = occupied_[word] &= ~(std::uint64_t{1} << (start & 63));
    if (bits == 0) words_ &= ~(std::uint32_t{1} << word);
    bits &= ~std::uint64_t{0} << (start & 63);
    if (bits == 0) {
      if (words_ == 0) {
        first_ = kNever;
        return false;
      }
      const std::uint32_t above = words_ & (~std::uint32_t{1} << word);
      word = static_cast<std::uint32_t>(std::countr_zero(above ? above : words_));
      bits = occupied_[word];
    }
    const std::uint32_t bucket = (word << 6) | static_cast<std::uint32_t>(std::countr_zero(bits));
    first_ += (bucket - start) & (kBuckets - 1);
    return true;
  }
  // The heap's first event goes before an equal one of the wheel: it was pushed earlier.
  void CompareHeap() {
    if (heap_.empty()) return;
    const Event& first = heap_.front();
    if (Earlier(next_, next_key_, first.time, first.key.value)) return;
    state_ |= kNextInHeap;
    SetNext(first);
  }
  template <typename F>
  void ForEachBucketBefore(Time end, F&& f) const {
    if (first_ == kNever) return;
    const std::int64_t last = std::min((end - 1) >> kShift, first_ + kBuckets - 1);
    for (std::int64_t slot = first_; slot <= last; ++slot) {
      const std::uint32_t bucket = Bucket(slot), in_word = bucket & 63;
      const std::uint64_t bits = occupied_[bucket >> 6] >> in_word;
      if (bits == 0) {
        slot += 63 - in_word;
        continue;
      }
      slot += std::countr_zero(bits);
      if (slot > last) return;
      f(Bucket(slot));
    }
  }
  // The first bucket is in the order of its events. The others have them in the reverse order of
  // their pushes, and a push there looks at none of them: they are seldom in the cache.
  void Sort() {
    if (first_ == first_before_) {
      first_before_ = kNever;
      return;
    }
    EventNodes& nodes = *nodes_;
    std::uint32_t& head = heads_[Bucket(first_)];
    EventNodes::Node& last = nodes[head];
    if (last.next == kNil) return;
    EventNodes::Node& before = nodes[last.next];
    if (before.next != kNil) {
      head = SortMany(head);
    } else if (!Later(before.event, last.event)) {
      before.next = head;
      head = std::exchange(last.next, kNil);
    }
  }
  [[gnu::noinline]] std::uint32_t SortMany(std::uint32_t rest) {
    EventNodes& nodes = *nodes_;
    std::uint32_t head = kNil;
    for (int sorted = 0; rest != kNil; ++sorted) {
      if (sorted == kManyPassed) [[unlikely]]
        return nodes.Sort(head, rest, Later);
      const std::uint32_t index = std::exchange(rest, nodes[rest].next);
      const Event& event = nodes[index].event;
      // Ahead of its equals: it was pushed before them.
      std::uint32_t* link = &head;
      while (*link != kNil && Later(event, nodes[*link].event)) link = &nodes[*link].next;
      nodes[index].next = *link;
      *link = index;
    }
    return head;
  }
  // An event was pushed into a bucket ahead of the first one.
  [[gnu::noinline]] void BeginAt(std::int64_t slot) {
    if (first_ != kNever && (state_ & kUnsorted) == 0) {
      if (first_before_ != kNever) Unsort(Bucket(first_before_));
      first_before_ = first_;
    }
    first_ = slot;
    state_ &= static_cast<std::uint8_t>(~kUnsorted);
  }
  // The rest of pushing an event into one of the two buckets that may be in order.
  [[gnu::noinline]] void PushFirst(std::int64_t slot, std::uint32_t index) {
    EventNodes& nodes = *nodes_;
    const Event& event = nodes[index].event;
    const std::uint32_t bucket = Bucket(slot);
    std::uint32_t* link = &heads_[bucket];
    if (slot == first_before_) {
      first_before_ = kNever;
      Unsort(bucket);
    } else if ((state_ & kUnsorted) == 0) {
      for (int passed = 0; *link != kNil && !Later(nodes[*link].event, event); ++passed) {
        if (passed == kManyPassed) [[unlikely]] {
          state_ |= kUnsorted;
          Unsort(bucket);
          link = &heads_[bucket];
          break;
        }
        link = &nodes[*link].next;
      }
    }
    nodes[index].next = *link;
    *link = index;
  }
  // As if each event of the bucket had been pushed after those ahead of it.
  void Unsort(std::uint32_t bucket) {
    EventNodes& nodes = *nodes_;
    std::uint32_t& head = heads_[bucket];
    std::uint32_t before = kNil;
    while (head != kNil) {
      const std::uint32_t behind = std::exchange(nodes[head].next, before);
      before = std::exchange(head, behind);
    }
    head = before;
  }
  // Into the heap, if it happens more than a turn of the wheel from now.
  [[gnu::noinline]] void PushRare(const Event& event) {
    if (heads_.empty()) {
      heads_.assign(kBuckets, kNil);
      base_ = 0;
    }
    if (static_cast<std::uint64_t>((event.time >> kShift) - base_) < kBuckets) {
      if (nodes_->full()) nodes_->Grow();
      return Push(event.time, event.key, event.data);
    }
    heap_.push_back(event);
    std::push_heap(heap_.begin(), heap_.end(), Later);
    heap_time_ = heap_.front().time;
    CompareHeap();
  }
  [[gnu::noinline]] Event PopRare() {
    if ((state_ & kNextInHeap) == 0) {
      SortCrowd();
      return Pop();
    }
    const Event event = heap_.front();
    std::pop_heap(heap_.begin(), heap_.end(), Later);
    heap_.pop_back();
    heap_time_ = heap_.empty() ? kNever : heap_.front().time;
    base_ = event.time >> kShift;
    state_ &= static_cast<std::uint8_t>(~kNextInHeap);
    next_ = kNever;
    if (first_ != kNever) {
      if (state_ != 0) SortCrowd();
      SetNext((*nodes_)[heads_[Bucket(first_)]].event);
    }
    CompareHeap();
    return event;
  }
  void SortCrowd() {
    Sort();
    state_ &= static_cast<std::uint8_t>(~kUnsorted);
  }

  alignas(64) Time next_ = kNever;  // the earliest event
  std::uint64_t next_key_ = 0;
  // The earliest event is in the heap; the first bucket is not in order, which a crowd there is
  // only when its events leave.
  static constexpr std::uint8_t kNextInHeap = 1, kUnsorted = 2;
  std::uint8_t state_ = 0;
  // Bucket number (not yet modulo a turn) of the last event taken. The first push finds every event
  // far from it, and makes the buckets.
  std::int64_t base_ = -std::int64_t{kBuckets};
  std::int64_t first_ = kNever;  // bucket number of the earliest event in the wheel
  // Likewise of what was that before an earlier event came, while its bucket is in order, too.
  std::int64_t first_before_ = kNever;
  EventNodes* nodes_;
  std::vector<std::uint32_t> heads_;
  Time heap_time_ = kNever;  // of the heap's first event
  std::vector<Event> heap_;
  std::uint32_t words_ = 0;  // bit w: occupied_[w] has a bit
  std::uint64_t occupied_[kBuckets / 64] = {};
};

}  // namespace percs
