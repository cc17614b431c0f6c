// Method: batches by hand, against the t interval and the t test worked out on paper.
#include "emulator/metrics/latency_batches.h"

#include <gtest/gtest.h>

#include <functional>

namespace percs {
namespace {

// One packet in the middle of each tenth of a phase of 1,000 ps.
LatencyBatches Of(const std::array<Time, 10>& latencies) {
  LatencyBatches batches;
  for (int i = 0; i < 10; ++i) batches.Add(i * 100 + 50, 1'000, latencies[i]);
  return batches;
}

TEST(LatencyBatches, PacketsFallIntoTheTenthInWhichTheyWereCreated) {
  LatencyBatches batches;
  batches.Add(0, 1'000, 7);
  batches.Add(99, 1'000, 8);
  batches.Add(100, 1'000, 9);
  batches.Add(999, 1'000, 10);
  batches.Add(0, 1, 1);  // the shortest phase
  EXPECT_EQ(batches.count, (std::array<std::uint64_t, 10>{3, 1, 0, 0, 0, 0, 0, 0, 0, 1}));
  EXPECT_EQ(batches.sum_ps, (std::array<std::uint64_t, 10>{16, 9, 0, 0, 0, 0, 0, 0, 0, 10}));
  LatencyBatches sum = batches;
  sum.Merge(batches);
  EXPECT_EQ(sum.count[0], 6u);
  EXPECT_EQ(sum.sum_ps[9], 20u);
}

TEST(LatencyBatches, TheLongestPhaseDoesNotOverflow) {
  LatencyBatches batches;
  batches.Add(1'000 * kSecond - 1, 1'000 * kSecond, kSecond);
  EXPECT_EQ(batches.count[9], 1u);
}

TEST(BatchMeans, EqualBatchesLeaveNoDoubt) {
  const BatchMeans means = BatchMeansOf(Of({5, 5, 5, 5, 5, 5, 5, 5, 5, 5}));
  EXPECT_EQ(means.half_width_ps, 0);
  EXPECT_TRUE(means.steady);
}

TEST(BatchMeans, TheIntervalIsStudentsOfNineDegreesOfFreedom) {
  // Five of 90 and five of 110, alternating: variance 1000/9, so 2.262157 * sqrt(1000/90).
  const BatchMeans means = BatchMeansOf(Of({90, 110, 90, 110, 90, 110, 90, 110, 90, 110}));
  EXPECT_NEAR(means.half_width_ps, 7.5405, 1e-3);
  EXPECT_TRUE(means.steady);
}

TEST(BatchMeans, ATrendIsNotSteadyUnlessItIsSmall) {
  EXPECT_FALSE(BatchMeansOf(Of({100, 110, 120, 130, 140, 150, 160, 170, 180, 190})).steady);
  // Beyond chance, but 4 % of the mean.
  EXPECT_TRUE(BatchMeansOf(Of({98, 98, 98, 98, 98, 102, 102, 102, 102, 102})).steady);
  EXPECT_FALSE(BatchMeansOf(Of({97, 97, 97, 97, 97, 103, 103, 103, 103, 103})).steady);
}

TEST(BatchMeans, OfABatchWithoutPacketsNothingIsKnown) {
  LatencyBatches batches = Of({5, 5, 5, 5, 5, 5, 5, 5, 5, 5});
  batches.count[3] = batches.sum_ps[3] = 0;
  EXPECT_LT(BatchMeansOf(batches).half_width_ps, 0);
  EXPECT_FALSE(BatchMeansOf(batches).steady);
}

// Sixty batches of one packet each.
SteadyPart SteadyOf(const std::function<Time(int)>& latency) {
  std::array<LatencyBatches, SteadyPart::kParts> parts;
  for (int i = 0; i < 60; ++i) parts[i / 10].Add(i % 10, 10, latency(i));
  return FindSteadyPart(parts);
}
// Alternates about its mean.
Time Noise(int i) { return i % 2 ? 3 : -3; }

TEST(SteadyPart, APhaseThatIsSteadyFromItsStartIsKeptWhole) {
  const SteadyPart steady = SteadyOf([](int i) { return 100 + Noise(i); });
  EXPECT_TRUE(steady.found);
  EXPECT_EQ(steady.warm_up_batches, 0);
  EXPECT_EQ(steady.first_part, 0);
  EXPECT_EQ(steady.kept.count, (std::array<std::uint64_t, 10>{6, 6, 6, 6, 6, 6, 6, 6, 6, 6}));
}

TEST(SteadyPart, ARampIsLeftOutToTheEndOfItsPart) {
  const SteadyPart steady = SteadyOf([](int i) { return i < 13 ? 10 + 5 * i : 100 + Noise(i); });
  EXPECT_TRUE(steady.found);
  EXPECT_EQ(steady.warm_up_batches, 13);
  EXPECT_EQ(steady.first_part, 2);
  EXPECT_EQ(steady.kept.count[0], 4u);
  EXPECT_EQ(steady.kept.sum_ps[9], 400u);
}

TEST(SteadyPart, WhatGrowsToTheEndIsNotSteady) {
  EXPECT_FALSE(SteadyOf([](int i) { return 100 + 10 * i + Noise(i); }).found);
  // Steady for the last third only.
  const SteadyPart late = SteadyOf([](int i) { return i < 40 ? 10 * i : 400 + Noise(i); });
  EXPECT_EQ(late.warm_up_batches, 40);
  EXPECT_EQ(late.first_part, 3);
  EXPECT_FALSE(late.found);
}

TEST(SteadyPart, OfABatchWithoutPacketsNothingIsKnown) {
  std::array<LatencyBatches, SteadyPart::kParts> parts;
  for (int i = 0; i < 60; ++i) {
    if (i != 17) parts[i / 10].Add(i % 10, 10, 100);
  }
  EXPECT_FALSE(FindSteadyPart(parts).found);
}

}  // namespace
}  // namespace percs
