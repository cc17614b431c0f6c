// The hardware of a blade: signals, DMA, bus, chip link, mailboxes, atomics, faults.
#include "emulator/cell/blade.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace percs::cell {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<Blade> MakeBlade(std::string_view type = "QS20") {
  return *Blade::Create(*ParametersOfBlade(type));
}

Task<> PingPong(Spe& spe, int partner, int rounds, bool first) {
  for (int i = 0; i < rounds; ++i) {
    if (first) co_await spe.SendSignal(partner, 1, 1, 0);
    co_await spe.ReadSignal(1);
    if (!first) co_await spe.SendSignal(partner, 1, 1, 0);
  }
}

double RoundTrip(int partner) {
  auto blade = MakeBlade();
  constexpr int kRounds = 100;
  EXPECT_TRUE(blade->RunSpe(0, [=](Spe& s) { return PingPong(s, partner, kRounds, true); }).ok());
  EXPECT_TRUE(blade->RunSpe(partner, [=](Spe& s) { return PingPong(s, 0, kRounds, false); }).ok());
  blade->Run(kNever);
  EXPECT_TRUE(blade->done());
  return static_cast<double>(blade->spe(0).time()) / kRounds / 1000;
}

TEST(BladeTest, SignalRoundTripsAreThoseCalibratedOn) {
  EXPECT_NEAR(RoundTrip(1), 160.1, 0.001);
  EXPECT_NEAR(RoundTrip(8), 619.4, 0.001);
}

Task<> Stream(Spe& spe, EffectiveAddress ea, std::uint32_t size, int count) {
  for (int i = 0; i < count; ++i) co_await spe.Put(0, ea, size, i % 4);
  co_await spe.WaitTagAll(0xf);
}

struct Pair {
  int from, to;
};

// Bytes per nanosecond (GB/s) of all pairs together, 32 commands of 16 KiB each.
double StreamRate(Blade& blade, const std::vector<Pair>& pairs) {
  constexpr int kCount = 32;
  for (const Pair& p : pairs) {
    EXPECT_TRUE(blade.RunSpe(p.from, [p](Spe& s) {
      return Stream(s, LocalStoreAddress(p.to, 0x10000), kDmaBytesMax, kCount);
    }).ok());
  }
  blade.Run(kNever);
  EXPECT_TRUE(blade.Result().status.ok()) << blade.Result().status;
  Time end = 0;
  for (const Pair& p : pairs) end = std::max(end, blade.spe(p.from).time());
  return static_cast<double>(pairs.size()) * kCount * kDmaBytesMax * 1000 / static_cast<double>(end);
}

TEST(BladeTest, OneStreamRunsAtTheRateOfAPort) {
  auto blade = MakeBlade();
  EXPECT_NEAR(StreamRate(*blade, {{0, 2}}), 25.6, 0.2);
}

TEST(BladeTest, NeighboursTogetherReachAlmostTheCommandLimit) {
  auto blade = MakeBlade();
  // Every SPE sends to its neighbour on the ring and receives from it: no two paths conflict.
  const double rate = StreamRate(
      *blade, {{0, 2}, {2, 0}, {4, 6}, {6, 4}, {1, 3}, {3, 1}, {5, 7}, {7, 5}});
  EXPECT_GT(rate, 195);
  EXPECT_LE(rate, 204.8);
}

TEST(BladeTest, StreamsWhosePathsOverlapShareTheTwoRingsOfTheirDirection) {
  auto blade = MakeBlade();
  // Units 8 to 1, 9 to 2 and 10 to 3: upwards, and all over the segments between 10 and 1.
  EXPECT_NEAR(StreamRate(*blade, {{4, 1}, {2, 3}, {0, 5}}), 2 * 25.6, 0.5);
  auto apart = MakeBlade();
  EXPECT_NEAR(StreamRate(*apart, {{4, 2}, {0, 1}, {5, 7}}), 3 * 25.6, 0.5);
}

TEST(BladeTest, StreamsIntoOneLocalStoreShareItsPort) {
  auto blade = MakeBlade();
  EXPECT_NEAR(StreamRate(*blade, {{1, 0}, {2, 0}, {3, 0}}), 25.6, 0.2);
}

TEST(BladeTest, ChipLinkRateIsTheParameter) {
  auto qs20 = MakeBlade("QS20");
  EXPECT_NEAR(StreamRate(*qs20, {{0, 8}, {1, 9}, {2, 10}, {3, 11}, {4, 12}}), 20, 0.3);
  auto alone = MakeBlade("QS20");
  EXPECT_NEAR(StreamRate(*alone, {{0, 8}}), 128 / 30.0, 0.05);
  auto single = MakeBlade("QS22");
  EXPECT_NEAR(StreamRate(*single, {{0, 8}}), 6.25, 0.1);
  auto shared = MakeBlade("QS22");
  EXPECT_NEAR(StreamRate(*shared, {{0, 8}, {1, 9}, {2, 10}}), 12.5, 0.2);
  auto both_ways = MakeBlade("QS22");
  EXPECT_NEAR(StreamRate(*both_ways, {{0, 8}, {1, 9}, {2, 10}, {11, 3}, {12, 4}, {13, 5}}), 25, 0.5);
}

TEST(BladeTest, AnUnknownTypeIsAnErrorThatNamesTheTypes) {
  EXPECT_THAT(ParametersOfBlade("QS23").status().message(), HasSubstr("QS20, QS21, QS22"));
}

}  // namespace
}  // namespace percs::cell
