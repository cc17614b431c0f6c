// Credits of a VC that are announced long before they exist: none is lost, however many there are.
#include "emulator/isr/credit_counter.h"

#include <gtest/gtest.h>

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

TEST(CreditCounterDeathTest, ARunOfNoneOrOfMoreThanABufferIsABug) {
  CreditCounter counter;
  EXPECT_DEATH(Announce(counter, 0, 0, 0), "count > 0");
  EXPECT_DEATH(Announce(counter, 0, 0x10000, 0), "count <= kRunCreditsMax");
  EXPECT_DEATH(counter.Announce(0, 0, 1, 0), "!full");
  EXPECT_DEATH(counter.Reset(-1), "credits >= 0");
}

}  // namespace
}  // namespace percs
