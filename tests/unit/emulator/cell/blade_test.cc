// The hardware of a blade: signals, DMA, bus, chip link, mailboxes, atomics, faults.
#include "emulator/cell/blade.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "emulator/experiments/cell_probes.h"

namespace percs::cell {
namespace {

using ::testing::HasSubstr;

double Rate(std::string_view type, const std::vector<std::pair<int, int>>& pairs) {
  return StreamRate(*ParametersOfBlade(type), pairs, kDmaBytesMax);
}

TEST(BladeTest, SignalRoundTripsAreThoseCalibratedOn) {
  EXPECT_NEAR(SignalRoundTrip(*ParametersOfBlade("QS20"), 1), 160.1, 0.001);
  EXPECT_NEAR(SignalRoundTrip(*ParametersOfBlade("QS20"), 8), 619.4, 0.001);
}

TEST(BladeTest, OneStreamRunsAtTheRateOfAPort) { EXPECT_NEAR(Rate("QS20", {{0, 2}}), 25.6, 0.2); }

TEST(BladeTest, NeighboursTogetherReachAlmostTheCommandLimit) {
  // Every SPE sends to its neighbour on the ring and receives from it: no two paths conflict.
  const double rate =
      Rate("QS20", {{0, 2}, {2, 0}, {4, 6}, {6, 4}, {1, 3}, {3, 1}, {5, 7}, {7, 5}});
  EXPECT_GT(rate, 195);
  EXPECT_LE(rate, 204.8);
}

TEST(BladeTest, StreamsWhosePathsOverlapShareTheTwoRingsOfTheirDirection) {
  // Units 8 to 1, 9 to 2 and 10 to 3: upwards, and all over the segments between 10 and 1.
  EXPECT_NEAR(Rate("QS20", {{4, 1}, {2, 3}, {0, 5}}), 2 * 25.6, 0.5);
  EXPECT_NEAR(Rate("QS20", {{4, 2}, {0, 1}, {5, 7}}), 3 * 25.6, 0.5);
}

TEST(BladeTest, StreamsIntoOneLocalStoreShareItsPort) {
  EXPECT_NEAR(Rate("QS20", {{1, 0}, {2, 0}, {3, 0}}), 25.6, 0.2);
}

TEST(BladeTest, DmaThatIsNotAlignedToALineIsSlower) {
  const BladeParameters p = *ParametersOfBlade("QS20");
  for (const std::uint32_t offset : {16u, 64u, 112u}) {
    EXPECT_NEAR(StreamRate(p, {{0, 1}}, 1024, offset) / StreamRate(p, {{0, 1}}, 1024), 8.0 / 9,
                0.02);
  }
}

TEST(BladeTest, TheChipLinkRateIsTheParameter) {
  EXPECT_NEAR(Rate("QS20", {{0, 8}, {1, 9}, {2, 10}, {3, 11}, {4, 12}}), 20, 0.3);
  EXPECT_NEAR(Rate("QS20", {{0, 8}}), 128 / 30.0, 0.05);
  EXPECT_NEAR(Rate("QS22", {{0, 8}}), 6.25, 0.1);
  EXPECT_NEAR(Rate("QS22", {{0, 8}, {1, 9}, {2, 10}}), 12.5, 0.2);
  EXPECT_NEAR(Rate("QS22", {{0, 8}, {1, 9}, {2, 10}, {11, 3}, {12, 4}, {13, 5}}), 25, 0.5);
}

TEST(BladeTest, MemoryGoesFirst) {
  EXPECT_GT(MemoryRateAgainstSpes(*ParametersOfBlade("QS20")), 24.5);
}

TEST(BladeTest, AnUnknownTypeIsAnErrorThatNamesTheTypes) {
  EXPECT_THAT(ParametersOfBlade("QS23").status().message(), HasSubstr("QS20, QS21, QS22"));
}

TEST(BladeTest, ParametersThatCannotBeAreRefused) {
  BladeParameters p = *ParametersOfBlade("QS20");
  p.link.single_line_time = 1;
  EXPECT_THAT(Blade::Create(p).status().message(), HasSubstr("link.single_line_time"));
  p = *ParametersOfBlade("QS20");
  p.queue_depth = 0;
  EXPECT_THAT(Blade::Create(p).status().message(), HasSubstr("queue_depth"));
}

}  // namespace
}  // namespace percs::cell
