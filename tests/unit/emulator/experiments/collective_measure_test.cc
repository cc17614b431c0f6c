// Method: means as a loop would have them; how often it is measured and when that ends.
#include "emulator/experiments/collective_measure.h"

#include <gtest/gtest.h>

namespace percs {
namespace {

TEST(SettlingCallsTest, CallsDoubleUntilTheMeanChangesByHalfAPercent) {
  SettlingCalls settling;
  EXPECT_EQ(settling.calls(), 10u);
  EXPECT_FALSE(settling.Settled(100));
  EXPECT_EQ(settling.calls(), 20u);
  EXPECT_FALSE(settling.Settled(99));
  EXPECT_EQ(settling.calls(), 40u);
  EXPECT_TRUE(settling.Settled(98.6));
}

TEST(SettlingCallsTest, AMeanThatDoesNotSettleEndsAtTheMostCalls) {
  SettlingCalls settling;
  int measured = 1;
  for (double mean = 100; !settling.Settled(mean); mean *= 1.1) ++measured;
  EXPECT_EQ(settling.calls(), SettlingCalls::kCallsMax);
  EXPECT_EQ(measured, 8);  // of 10, 20, ... 640 and 1000 calls
}

TEST(SettlingCallsTest, ALoopThatSettlesHasTheMeanOfAThousandCalls) {
  CollectiveWorkload w;
  w.placement = {2, 4, 1, ThreadMapping::kCore};
  SettlingCalls settling;
  double mean = 0;
  do {
    w.iterations = settling.calls();
    mean = MeasureCollective(w)->collective.Nanoseconds();
  } while (!settling.Settled(mean));
  w.iterations = 1000;
  EXPECT_NEAR(mean / MeasureCollective(w)->collective.Nanoseconds(), 1, 0.01);
}

}  // namespace
}  // namespace percs
