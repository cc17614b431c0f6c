// The order in which events leave. Method: random pushes and pops beside a sorted multimap, which
// keeps events of one time and key in the order in which they were pushed.
#include "emulator/engine/event_queue.h"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <utility>

#include "emulator/base/random.h"
#include "tests/support/seed.h"

namespace percs {
namespace {

class Both {
 public:
  explicit Both(EventNodes* nodes) : queue_(nodes) {}
  void Push(Time time, EventKey key) {
    const std::uint64_t data = EventData(&pushed_[pushes_++ % kObjects]);
    queue_.Push(time, key, data);
    model_.emplace(std::pair(time, key.value), data);
  }
  // Of both, which are to be the same.
  Time Pop() {
    const auto first = model_.begin();
    EXPECT_EQ(queue_.next_time(), first->first.first);
    EXPECT_EQ(queue_.next_key(), first->first.second);
    const Event event = queue_.Pop();
    EXPECT_EQ(event.time, first->first.first);
    EXPECT_EQ(event.key.value, first->first.second);
    EXPECT_EQ(event.data, first->second);
    model_.erase(first);
    EXPECT_EQ(queue_.empty(), model_.empty());
    return event.time;
  }
  bool empty() const { return model_.empty(); }
  std::size_t size() const { return model_.size(); }

 private:
  static constexpr std::size_t kObjects = 4096;
  EventQueue queue_;
  std::multimap<std::pair<Time, std::uint64_t>, std::uint64_t> model_;
  std::size_t pushes_ = 0;
  char pushed_[kObjects + 128];  // the queue fetches what is behind an object, too
};

EventKey Key(std::uint64_t detail) { return EventKey(EventClass::kCommand, 0, 0, detail); }

// Many times, an event comes by `push(now)` if `grows()`, or else one leaves; then all leave.
template <typename Grows, typename Push>
void ComeAndLeave(Both& both, Grows grows, Push push) {
  Time now = 0;
  for (int i = 0; i < 20'000; ++i) {
    if (grows()) {
      push(now);
    } else {
      now = both.Pop();
    }
  }
  while (!both.empty()) both.Pop();
}

TEST(EventQueueTest, EventsLeaveByTimeAndKeyNearAndFar) {
  PERCS_TRACE_SEED();
  RandomStream random(test::Seed(), "test/queue");
  EventNodes nodes;
  Both both(&nodes);
  const auto grows = [&] { return both.empty() || random.Below(100) < 52; };
  ComeAndLeave(both, grows, [&](Time now) {
    // Within a bucket, within a turn of the wheel, and beyond it.
    const std::uint32_t reach[] = {200, 400'000, 3'000'000};
    both.Push(now + random.Below(reach[random.Below(3)]), Key(random.Below(50)));
  });
}

// Crowds in one bucket, in several orders, in between which events leave and new ones take the
// memory of those that have left.
TEST(EventQueueTest, EventsOfACrowdLeaveInOrderToo) {
  PERCS_TRACE_SEED();
  RandomStream random(test::Seed(), "test/crowd");
  EventNodes nodes;
  Both both(&nodes);
  Time now = 0;
  for (int round = 0; round < 60; ++round) {
    const Time at = (now + 1024) / 512 * 512 + 512 * random.Below(3);
    const std::uint32_t order = random.Below(4);
    for (std::uint32_t i = 0; i < 300; ++i) {
      const std::uint32_t details[] = {i, 300 - i, random.Below(300), i / 50 * 50};
      both.Push(at + random.Below(order == 2 ? 512 : 1), Key(details[order]));
      if (random.Below(4) == 0) both.Push(at + 512, Key(i));
      if (random.Below(8) == 0) now = both.Pop();
      if (now >= at) break;
    }
    const std::size_t left = random.Below(static_cast<std::uint32_t>(both.size()));
    while (both.size() > left) now = both.Pop();
  }
  while (!both.empty()) both.Pop();
}

// A bucket is the first one, earlier events come, and more join it, in many turns: those of one
// time and key still leave in the order in which they were pushed.
TEST(EventQueueTest, EqualEventsLeaveInTheOrderOfTheirPushes) {
  PERCS_TRACE_SEED();
  RandomStream random(test::Seed(), "test/equal");
  EventNodes nodes;
  Both both(&nodes);
  const auto grows = [&] { return both.size() < 2 + random.Below(4); };
  ComeAndLeave(both, grows,
               [&](Time now) { both.Push((now / 512 + 1 + random.Below(4)) * 512, Key(0)); });
}

// The memory of an event that has left belongs to none, or to the next one.
TEST(EventQueueTest, EventsJoinACrowdWhileItLeaves) {
  PERCS_TRACE_SEED();
  RandomStream random(test::Seed(), "test/leaving");
  EventNodes nodes;
  Both both(&nodes);
  for (int round = 0; round < 300; ++round) {
    const std::size_t most = 100 + random.Below(200), least = random.Below(100);
    while (both.size() < most) both.Push(512, Key(random.Below(1000)));
    while (both.size() > least) both.Pop();
  }
  while (!both.empty()) both.Pop();
}

// ... of any of the queues that share it.
TEST(EventQueueTest, CrowdsOfSeveralQueuesShareTheirMemory) {
  PERCS_TRACE_SEED();
  RandomStream random(test::Seed(), "test/shared");
  EventNodes nodes;
  std::array<Both, 3> queues{Both(&nodes), Both(&nodes), Both(&nodes)};
  for (int round = 0; round < 900; ++round) {
    Both& both = queues[random.Below(3)];
    const std::size_t most = 100 + random.Below(200), least = random.Below(100);
    while (both.size() < most) both.Push(512, Key(random.Below(1000)));
    while (both.size() > least) both.Pop();
  }
  for (Both& both : queues) {
    while (!both.empty()) both.Pop();
  }
}

}  // namespace
}  // namespace percs
