#include "emulator/base/pool.h"

#include <cstdint>
#include <memory>
#include <set>
#include <vector>

#include "absl/base/config.h"
#include "gtest/gtest.h"

namespace percs {
namespace {

TEST(Pool, AnObjectThatIsTakenAgainHasWhatItsLastUserLeft) {
  Pool<std::vector<int>> pool;
  std::vector<int>* const object = pool.Take();
  object->assign(3, 7);
  pool.Give(object);
  ASSERT_EQ(pool.Take(), object);
  EXPECT_EQ(*object, std::vector<int>(3, 7));
}

TEST(Pool, GrowsByObjectsOfTheirOwn) {
  Pool<int> pool;
  std::set<int*> taken;
  for (int i = 0; i < 1000; ++i) {
    int* const object = pool.Take();
    EXPECT_TRUE(taken.insert(object).second);
    *object = i;
  }
  const std::size_t left = pool.free();
  for (int* object : taken) pool.Give(object);
  EXPECT_EQ(pool.free(), left + 1000);
  EXPECT_TRUE(taken.contains(pool.Take()));
}

// In builds with the address sanitizer the destructor sees objects that are marked as unused.
TEST(Pool, DestroysObjectsThatAreFreeAndThoseThatAnotherPoolHas) {
  const auto counted = std::make_shared<int>();
  {
    Pool<std::shared_ptr<int>> a, b;
    for (int i = 0; i < 20; ++i) {
      std::shared_ptr<int>* const object = a.Take();
      *object = counted;
      (i % 2 == 0 ? a : b).Give(object);
    }
  }
  EXPECT_EQ(counted.use_count(), 1);
}

#ifdef ABSL_HAVE_ADDRESS_SANITIZER
TEST(PoolDeathTest, TheAddressSanitizerSeesTheUseOfAnObjectThatWasGivenBack) {
  Pool<std::uint64_t> pool;
  std::uint64_t* const object = pool.Take();
  pool.Give(object);
  EXPECT_DEATH(*const_cast<volatile std::uint64_t*>(object) = 1, "use-after-poison");
}
#endif

}  // namespace
}  // namespace percs
