#include "emulator/base/payload.h"

#include <cstdint>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/config.h"
#include "gtest/gtest.h"

namespace percs {
namespace {

// As a number: the memory may be anybody's by the time it is compared.
std::uintptr_t MemoryOf(const PayloadRef& payload) {
  return reinterpret_cast<std::uintptr_t>(payload.bytes());
}

TEST(Payload, IsThereUntilItsLastReferenceIsDropped) {
  std::vector<PayloadRef> references(2, PayloadRef::Make());
  std::memset(references[0].bytes(), 7, kPacketBytesMax);
  references.pop_back();
  PayloadRef other = PayloadRef::Make();
  std::memset(other.bytes(), 9, kPacketBytesMax);
  EXPECT_EQ(references[0].bytes()[0], 7);
  EXPECT_EQ(references[0].bytes()[kPacketBytesMax - 1], 7);
}

TEST(Payload, TheNextFullOneHasTheMemoryThatWasDroppedLast) {
  PayloadRef a = PayloadRef::Make(), b = PayloadRef::Make();
  const std::uintptr_t of_a = MemoryOf(a), of_b = MemoryOf(b);
  a.Clear();
  b.Clear();
  EXPECT_EQ(MemoryOf(PayloadRef::Make(kPacketBytesMax - 7)), of_b) << "rounded up to a full one";
  const PayloadRef first = PayloadRef::Make(), second = PayloadRef::Make();
  EXPECT_EQ(MemoryOf(first), of_b);
  EXPECT_EQ(MemoryOf(second), of_a);
}

TEST(Payload, AShortOneHasNoMemoryOfAFullOneNorTheOtherWayRound) {
  PayloadRef full = PayloadRef::Make();
  const std::uintptr_t memory = MemoryOf(full);
  full.Clear();
  PayloadRef short_one = PayloadRef::Make(kPacketBytesMax - 8);
  EXPECT_NE(MemoryOf(short_one), memory);
  short_one.Clear();
  EXPECT_EQ(MemoryOf(PayloadRef::Make()), memory);
}

// The address sanitizer finds what is lost, or freed twice.
TEST(Payload, AThreadKeepsSomeAndFreesThemWhenItEnds) {
  std::vector<PayloadRef> made;
  for (int i = 0; i < 1000; ++i) made.push_back(PayloadRef::Make());
  std::thread([made = std::move(made)]() mutable {
    static thread_local PayloadRef dropped_last;  // made before the thread keeps any
    dropped_last = PayloadRef::Make();
    made.clear();
    for (int i = 0; i < 1000; ++i) made.push_back(PayloadRef::Make());
  }).join();
}

#ifdef ABSL_HAVE_ADDRESS_SANITIZER
TEST(PayloadDeathTest, TheAddressSanitizerSeesTheUseOfOneThatWasDropped) {
  PayloadRef payload = PayloadRef::Make();
  volatile std::uint8_t* const bytes = payload.bytes();
  payload.Clear();
  EXPECT_DEATH(bytes[0] = 1, "use-after-poison");
}
#endif

}  // namespace
}  // namespace percs
