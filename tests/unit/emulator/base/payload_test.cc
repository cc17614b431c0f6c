#include "emulator/base/payload.h"

#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace percs {
namespace {

TEST(Payload, IsThereUntilItsLastReferenceIsDropped) {
  PayloadRef a = PayloadRef::Make();
  std::memset(a.bytes(), 7, kPacketBytesMax);
  PayloadRef b = a;
  a.Clear();
  PayloadRef other = PayloadRef::Make();
  std::memset(other.bytes(), 9, kPacketBytesMax);
  EXPECT_EQ(b.bytes()[0], 7);
  EXPECT_EQ(b.bytes()[kPacketBytesMax - 1], 7);
}

TEST(Payload, TheNextFullOneHasTheMemoryThatWasDroppedLast) {
  PayloadRef a = PayloadRef::Make(), b = PayloadRef::Make();
  const std::uint8_t *const of_a = a.bytes(), *const of_b = b.bytes();
  a.Clear();
  b.Clear();
  EXPECT_EQ(PayloadRef::Make(kPacketBytesMax - 7).bytes(), of_b) << "rounded up to a full one";
  const PayloadRef first = PayloadRef::Make(), second = PayloadRef::Make();
  EXPECT_EQ(first.bytes(), of_b);
  EXPECT_EQ(second.bytes(), of_a);
}

TEST(Payload, AShortOneHasNoMemoryOfAFullOneNorTheOtherWayRound) {
  PayloadRef full = PayloadRef::Make();
  const std::uint8_t* const memory = full.bytes();
  full.Clear();
  PayloadRef short_one = PayloadRef::Make(kPacketBytesMax - 8);
  EXPECT_NE(short_one.bytes(), memory);
  const std::uint8_t* const too_short = short_one.bytes();
  short_one.Clear();
  const PayloadRef again = PayloadRef::Make();
  EXPECT_EQ(again.bytes(), memory);
  EXPECT_NE(PayloadRef::Make().bytes(), too_short);
}

// The address sanitizer finds what is lost, or freed twice.
TEST(Payload, AThreadKeepsSomeAndFreesThemWhenItEnds) {
  std::vector<PayloadRef> made;
  for (int i = 0; i < 1000; ++i) made.push_back(PayloadRef::Make());
  static thread_local PayloadRef dropped_last;  // made before the thread keeps any
  std::thread([made = std::move(made)]() mutable {
    dropped_last = PayloadRef::Make();
    made.clear();
    for (int i = 0; i < 1000; ++i) made.push_back(PayloadRef::Make());
  }).join();
}

}  // namespace
}  // namespace percs
