// Method: whether memory was taken is seen by whether two values that nobody wrote are one object.
#include "emulator/base/on_demand.h"

#include <gtest/gtest.h>

#include <array>
#include <utility>

namespace percs::on_demand_test {
namespace {

using Counts = std::array<int, 100>;

TEST(OnDemand, ReadsAsItBeganUntilItIsWritten) {
  OnDemand<Counts> counts;
  EXPECT_EQ(counts.to_read()[7], 0);
  EXPECT_EQ(&counts.to_read(), &OnDemand<Counts>().to_read()) << "no memory of its own";
  counts.to_write()[7] = 3;
  EXPECT_EQ(counts.to_read()[7], 3);
  EXPECT_EQ(OnDemand<Counts>().to_read()[7], 0) << "others are as they were";
}

TEST(OnDemand, CopiesHaveMemoryOfTheirOwn) {
  OnDemand<Counts> counts;
  counts.to_write()[7] = 3;
  OnDemand<Counts> copy = counts;
  copy.to_write()[7] = 4;
  EXPECT_EQ(counts.to_read()[7], 3);
  counts = std::as_const(counts);
  EXPECT_EQ(counts.to_read()[7], 3);
  counts = OnDemand<Counts>();
  EXPECT_EQ(counts.to_read()[7], 0);
  copy = counts;
  EXPECT_EQ(copy.to_read()[7], 0);
}

TEST(OnDemand, ComparesValuesAndNotMemory) {
  OnDemand<Counts> counts, other;
  counts.to_write();
  EXPECT_TRUE(counts == other);
  counts.to_write()[7] = 3;
  EXPECT_FALSE(counts == other);
  other.to_write()[7] = 3;
  EXPECT_TRUE(counts == other);
}

TEST(OnDemand, GivesBackTheMemoryOfWhatIsAsItBegan) {
  OnDemand<Counts> counts;
  counts.to_write();
  counts.Trim();
  EXPECT_EQ(&counts.to_read(), &OnDemand<Counts>().to_read());
  counts.to_write()[7] = 3;
  counts.Trim();
  EXPECT_EQ(counts.to_read()[7], 3);
}

}  // namespace
}  // namespace percs::on_demand_test
