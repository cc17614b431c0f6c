// Waiting for a bell: what has rung already is seen without a system call, and a look in vain is
// followed by waits that sleep at once, more of them each time.
#include "client/ofi/channel.h"

#include <thread>

#include "gtest/gtest.h"

namespace percs::mpi {
namespace {

TEST(Channel, ALookSeesWhatHasRung) {
  Bell bell;
  const std::uint32_t seen = bell.count.load();
  bell.Ring();
  Looking looking;
  EXPECT_TRUE(looking.Changes(bell.count, seen));
  EXPECT_EQ(looking.sleeps, 0u);
  bell.Wait(seen, 60'000, &looking);  // and does not wait
}

TEST(Channel, AfterALookInVainOneSleepsAtOnceForAWhile) {
  const std::atomic<std::uint32_t> word{7};
  Looking looking;
  std::uint32_t sleeps = Looking::kSleepsMin;
  for (int look = 0; look < 3; ++look, sleeps *= 2) {
    EXPECT_FALSE(looking.Changes(word, 7));
    ASSERT_EQ(looking.sleeps, sleeps);
    for (std::uint32_t left = sleeps; left > 0; --left) {
      EXPECT_FALSE(looking.Changes(word, 8)) << "it does not look";
      EXPECT_EQ(looking.sleeps, left - 1);
    }
  }
  EXPECT_TRUE(looking.Changes(word, 8));
  EXPECT_EQ(looking.next_sleeps, 4 * Looking::kSleepsMin) << "half as long after one in time";
}

TEST(Channel, AWaitEndsWhenTheBellRingsAndWhenItsTimeIsOver) {
  Bell bell;
  bell.Wait(0, 1);
  EXPECT_EQ(bell.asleep.load(), 0u);
  std::thread other([&bell] {
    while (bell.asleep.load() == 0) std::this_thread::yield();
    bell.Ring();
  });
  bell.Wait(0, 60'000);
  other.join();
  EXPECT_EQ(bell.count.load(), 1u);
}

}  // namespace
}  // namespace percs::mpi
