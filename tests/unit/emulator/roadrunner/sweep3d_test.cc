// Sweep3D: both programming models with real arithmetic against a serial sweep, bit by bit; the
// timing form against the sweep on real blades.
#include <gtest/gtest.h>

#include "emulator/base/random.h"
#include "emulator/roadrunner/accelerator.h"
#include "emulator/roadrunner/sweep_timing.h"
#include "tests/support/seed.h"

namespace percs::roadrunner {
namespace {

TEST(RankGrid, TilesOfCellsBladesAndTribladesCoverTheGridOnce) {
  for (const int ranks : {8, 16, 32, 96, 3060 * 32}) {
    const auto grid = RankGrid::ForRanks(ranks);
    ASSERT_TRUE(grid.ok());
    EXPECT_EQ(grid->px * grid->py, ranks);
    for (Rank rank = 0; rank < ranks; ++rank)
      ASSERT_EQ(grid->At(grid->x(rank), grid->y(rank)), rank);
    EXPECT_EQ(grid->At(-1, 0), -1);
    EXPECT_EQ(grid->At(0, grid->py), -1);
  }
  EXPECT_FALSE(RankGrid::ForRanks(24).ok());
  // Neighbours inside a Cell, a blade and a triblade are near.
  const RankGrid grid = *RankGrid::ForRanks(64);
  EXPECT_EQ(DistanceOf(grid.At(0, 0), grid.At(1, 0)), Distance::kChip);
  EXPECT_EQ(DistanceOf(grid.At(0, 1), grid.At(0, 2)), Distance::kBlade);
  EXPECT_EQ(DistanceOf(grid.At(3, 0), grid.At(4, 0)), Distance::kNode);
}

TEST(Sweep3d, OnCmlItGivesTheSerialFluxBitByBit) {
  PERCS_TRACE_SEED();
  RandomStream random(test::Seed(), "sweep3d");
  for (const int ranks : {8, 16, 32, 64}) {
    SweepProblem p;
    p.i = 8 + static_cast<int>(random.Below(9));
    p.j = 8 + static_cast<int>(random.Below(9));
    p.k_block = 1 + static_cast<int>(random.Below(4));
    p.k = p.k_block * (1 + static_cast<int>(random.Below(3)));
    p.angle_block = random.Below(2) ? 3 : 2;
    p.iterations = 2;
    const auto swept = SweepOnCml(DefaultParameters(), p, ranks);
    ASSERT_TRUE(swept.ok()) << swept.status();
    EXPECT_EQ(swept->flux, SerialSweep(p))
        << ranks << " ranks, " << p.i << " x " << p.j << " x " << p.k;
  }
}

TEST(Sweep3d, OnTheAcceleratorItGivesTheSerialFluxBitByBit) {
  SweepProblem p;
  p.i = 10;
  p.j = 7;
  p.k = 6;
  p.k_block = 3;
  p.iterations = 2;
  const auto swept = SweepOnAccelerator(cell::BladeParameters(), p);
  ASSERT_TRUE(swept.ok()) << swept.status();
  EXPECT_EQ(swept->flux, SerialSweep(p));
  EXPECT_EQ(swept->lines, 2u * 8 * 2 * 7 * 6);
  EXPECT_GT(swept->dma, 0);
  p.i = 9;
  EXPECT_FALSE(SweepOnAccelerator(cell::BladeParameters(), p).ok());
}

TEST(Sweep3d, BadProblemsAndTilesThatDoNotFitSayWhy) {
  SweepProblem p;
  p.k_block = 3;
  EXPECT_NE(SweepOnCml(DefaultParameters(), p, 8).status().message().find("blocks must divide"),
            std::string::npos);
  p = SweepProblem();
  p.i = 3;
  EXPECT_NE(
      SweepOnCml(DefaultParameters(), p, 8).status().message().find("every rank needs a cell"),
      std::string::npos);
  p = SweepProblem();
  p.i = p.j = p.k = 48;
  EXPECT_EQ(SweepOnCml(DefaultParameters(), p, 8).status().code(),
            absl::StatusCode::kResourceExhausted);
}

// The timing form leaves out what buses do to each other; near and far messages must still take
// their time.
TEST(SweepTiming, ItTakesTheTimeOfTheSweepOnRealBlades) {
  for (const int ranks : {8, 16, 64}) {
    const RankGrid grid = *RankGrid::ForRanks(ranks);
    SweepProblem p;
    p.i = 3 * grid.px;
    p.j = 3 * grid.py;
    p.k = 20;
    p.k_block = 10;
    const auto real = SweepOnCml(DefaultParameters(), p, ranks);
    const auto timing = SweepTiming(DefaultParameters(), p, ranks, false);
    ASSERT_TRUE(real.ok()) << real.status();
    ASSERT_TRUE(timing.ok()) << timing.status();
    EXPECT_NEAR(static_cast<double>(timing->time) / static_cast<double>(real->time), 1.0, 0.1)
        << ranks << " ranks";
    EXPECT_EQ(timing->messages, real->cluster.cml.near_sends + real->cluster.cml.far_sends);
    EXPECT_EQ(timing->far_messages, real->cluster.cml.far_sends);
  }
}

TEST(SweepTiming, AnIdealNetworkIsFasterAndComputesTheSame) {
  const RankGrid grid = *RankGrid::ForRanks(128);
  SweepProblem p = WeakScalingProblem(grid);
  p.k = 40;
  const auto real = SweepTiming(DefaultParameters(), p, 128, false);
  const auto again = SweepTiming(DefaultParameters(), p, 128, false);
  const auto ideal = SweepTiming(DefaultParameters(), p, 128, true);
  ASSERT_TRUE(real.ok() && again.ok() && ideal.ok());
  EXPECT_EQ(real->digest, again->digest);
  EXPECT_EQ(real->computation, ideal->computation);
  EXPECT_LT(ideal->time, real->time);
  EXPECT_GE(ideal->time, ideal->computation);
}

// Without a network's time what is left beside the work is the pipeline that fills and drains.
TEST(SweepTiming, CornersFollowEachOtherAsInTheRealCode) {
  for (const int ranks : {16, 32, 128}) {
    const RankGrid grid = *RankGrid::ForRanks(ranks);
    SweepProblem p = WeakScalingProblem(grid);
    p.k = 40;
    const auto ideal = SweepTiming(DefaultParameters(), p, ranks, true);
    ASSERT_TRUE(ideal.ok()) << ideal.status();
    const Time block = ideal->computation / p.steps();
    EXPECT_EQ(ideal->time, block * (p.steps() + 2 * (grid.px - 1) + 4 * (grid.py - 1))) << ranks;
  }
}

// Of the two chips' double precision only the issue differs.
TEST(SweepProblem, ACellAndAngleTakesLessThanHalfTheTimeOnAPowerXCell) {
  EXPECT_NEAR(static_cast<double>(kCellAngleOfCell) / static_cast<double>(kCellAngleOfPowerXCell),
              1 / (0.36 + 0.64 / 7), 0.001);
  EXPECT_EQ(WeakScalingProblem(*RankGrid::ForRanks(32)).cell_angle, kCellAngleOfPowerXCell);
}

}  // namespace
}  // namespace percs::roadrunner
