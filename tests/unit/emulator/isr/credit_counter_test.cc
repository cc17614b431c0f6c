// Credits of a VC that are announced long before they exist: none is lost, however many there are.
#include "emulator/isr/credit_counter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "emulator/base/random.h"
#include "tests/support/seed.h"

namespace percs {
namespace {

constexpr int kRuns = 100'000;  // more than 16 bits count

void Announce(CreditCounter& counter, Time start, int count, std::uint32_t generation) {
  if (counter.full()) counter.MakeRoom(0);
  counter.Announce(start, 0, count, generation);
}

TEST(CreditCounterTest, EveryAnnouncedRunIsKept) {
  CreditCounter counter;
  counter.Reset(0);
  for (int i = 0; i < kRuns; ++i)
    Announce(counter, kMicrosecond + i, 2, static_cast<std::uint32_t>(i));
  EXPECT_EQ(counter.Total(), 2 * kRuns);
  EXPECT_FALSE(counter.Any(kMicrosecond - 1));
  EXPECT_EQ(counter.Next(), kMicrosecond);
  EXPECT_TRUE(counter.Any(kMicrosecond + kRuns));
  EXPECT_EQ(counter.counted(), 2 * kRuns);
}

TEST(CreditCounterTest, AGenerationThatEndedTakesItsCreditsWithIt) {
  CreditCounter counter;
  counter.Reset(5);
  for (int i = 0; i < kRuns; ++i) Announce(counter, kMicrosecond, 1, static_cast<std::uint32_t>(i));
  counter.Drop(kRuns - 3);
  EXPECT_EQ(counter.Total(), 3);
}

// Every credit by itself, with the time at which its run is known.
struct Credit {
  Time known = 0, at = 0;
};

// As TakeCertain is described: the earliest ones, as long as each is there in time.
int TakeFrom(std::vector<Credit>* all, Time t, Time spacing, int wanted) {
  std::sort(all->begin(), all->end(), [](const Credit& a, const Credit& b) { return a.at < b.at; });
  int taken = 0;
  for (auto next = all->begin(); taken < wanted && next != all->end();) {
    if (next->known > t) {
      ++next;
    } else if (next->at > t + taken * spacing) {
      break;
    } else {
      next = all->erase(next);
      ++taken;
    }
  }
  return taken;
}

TEST(CreditCounterTest, TheEarliestAreTakenInWhateverOrderTheyWereAnnounced) {
  PERCS_TRACE_SEED();
  RandomStream random(test::Seed(), "test/credits");
  for (int round = 0; round < 200; ++round) {
    CreditCounter counter;
    const int reset = static_cast<int>(random.Below(4));
    counter.Reset(reset);
    std::vector<Credit> all(static_cast<std::size_t>(reset));
    Time now = 0;
    for (int step = 0; step < 200; ++step) {
      now += random.Below(30);
      for (std::uint32_t runs = random.Below(round % 2 == 0 ? 3 : 12); runs > 0; --runs) {
        const Time start = now + 1 + random.Below(300), spacing = random.Below(20);
        const int count = static_cast<int>(1 + random.Below(random.Below(2) == 0 ? 1 : 6));
        if (counter.full()) counter.MakeRoom(now);
        counter.Announce(start, spacing, count, 0);
        for (int i = 0; i < count; ++i) all.push_back({start, start + i * spacing});
      }
      const Time spacing = 1 + random.Below(15);
      const int wanted = static_cast<int>(1 + random.Below(random.Below(4) == 0 ? 60 : 6));
      ASSERT_EQ(counter.TakeCertain(now, spacing, wanted), TakeFrom(&all, now, spacing, wanted));
      ASSERT_EQ(counter.Total(), static_cast<int>(all.size()));
      const bool any =
          std::any_of(all.begin(), all.end(), [now](const Credit& c) { return c.at <= now; });
      ASSERT_EQ(counter.Any(now), any);
      if (any || all.empty()) continue;
      Time next = kNever;
      for (const Credit& c : all) next = std::min(next, c.at);
      ASSERT_EQ(counter.Next(), next);
    }
  }
}

TEST(CreditCounterDeathTest, ARunOfNoneOrOfMoreThanABufferIsABug) {
  CreditCounter counter;
  EXPECT_DEATH(Announce(counter, 0, 0, 0), "count > 0");
  EXPECT_DEATH(Announce(counter, 0, 0x10000, 0), "count <= kRunCreditsMax");
  EXPECT_DEATH(counter.Announce(0, 0, 1, 0), "!full");
  EXPECT_DEATH(counter.Reset(-1), "credits >= 0");
}

}  // namespace
}  // namespace percs
