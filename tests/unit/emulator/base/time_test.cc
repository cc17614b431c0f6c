// Method: times by hand, each with the text a person would write.
#include "emulator/base/time.h"

#include <gtest/gtest.h>

#include <limits>

namespace percs {
namespace {

TEST(FormatTimeTest, IsExactInTheLargestUnitWithAWholePart) {
  EXPECT_EQ(FormatTime(0), "0ps");
  EXPECT_EQ(FormatTime(999), "999ps");
  EXPECT_EQ(FormatTime(55'421), "55.421ns");
  EXPECT_EQ(FormatTime(40 * kMicrosecond), "40us");
  EXPECT_EQ(FormatTime(25'551'143'256), "25.551143256ms");
  EXPECT_EQ(FormatTime(-1500), "-1.5ns");
  EXPECT_EQ(FormatTime(3 * kSecond + 1), "3.000000000001s");
  EXPECT_EQ(FormatTime(kNever), "never");
  EXPECT_EQ(FormatTime(std::numeric_limits<Time>::min()), "-never");
}

TEST(FormatTimeTest, RoundsToTheDecimalsAskedFor) {
  EXPECT_EQ(FormatTime(21'034'567'890, 3), "21.035ms");
  EXPECT_EQ(FormatTime(21'034'467'890, 3), "21.034ms");
  EXPECT_EQ(FormatTime(5'200'000, 3), "5.2us");
  EXPECT_EQ(FormatTime(5'999'999, 0), "6us");
}

}  // namespace
}  // namespace percs
