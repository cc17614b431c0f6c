// Every algorithm of every collective, for every count of SPEs, with real data against a serial
// reference.
#include "emulator/cell/collectives/collectives.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <vector>

#include "emulator/base/random.h"
#include "emulator/cell/collectives/measure.h"
#include "tests/support/seed.h"

namespace percs::cell {
namespace {

using ::testing::HasSubstr;

BladeParameters Qs20() { return *ParametersOfBlade("QS20"); }

std::vector<AlgorithmSpec> SpecsOf(Collective collective) {
  std::vector<AlgorithmSpec> specs = {
      {Algorithm::kAuto, 2}, {Algorithm::kAllToOne, 2}, {Algorithm::kAllToOneBlade, 2}};
  for (int degree : {2, 3, 4, 7}) {
    specs.push_back({Algorithm::kTree, degree});
    specs.push_back({Algorithm::kTreeBlade, degree});
  }
  if (collective == Collective::kBarrier) specs.push_back({Algorithm::kPairwise, 2});
  return specs;
}

void ExpectRight(const CollectiveLoop& loop) {
  const auto timing = MeasureCollective(Qs20(), loop);
  ASSERT_TRUE(timing.ok()) << timing.status();
  EXPECT_EQ(timing->wrong, 0u) << NameOf(loop.collective, loop.spec) << " with " << loop.spes
                               << " SPEs, " << loop.bytes << " bytes, " << loop.elements
                               << " elements";
}

// Back to back, and with random delays before every call.
void ExpectRightBothWays(CollectiveLoop loop) {
  for (const Time delay : {Time{0}, 2 * kMicrosecond}) {
    loop.delay_max = delay;
    loop.iterations = 7;
    loop.seed = test::Seed() + static_cast<std::uint64_t>(loop.spes);
    ExpectRight(loop);
  }
}

TEST(CollectivesTest, NobodyLeavesABarrierBeforeAllHaveEntered) {
  PERCS_TRACE_SEED();
  for (const AlgorithmSpec& spec : SpecsOf(Collective::kBarrier)) {
    for (int spes = 1; spes <= kSpes; ++spes) {
      CollectiveLoop loop;
      loop.spec = spec;
      loop.spes = spes;
      ExpectRightBothWays(loop);
    }
  }
}

TEST(CollectivesTest, BroadcastsReachEverybodyWhole) {
  PERCS_TRACE_SEED();
  for (const AlgorithmSpec& spec : SpecsOf(Collective::kBroadcast)) {
    for (int spes = 1; spes <= kSpes; ++spes) {
      for (std::uint32_t bytes : {1u, 4u, 20u, 128u, 2048u, 16384u}) {
        CollectiveLoop loop;
        loop.collective = Collective::kBroadcast;
        loop.spec = spec;
        loop.spes = spes;
        loop.bytes = bytes;
        ExpectRightBothWays(loop);
      }
    }
  }
}

TEST(CollectivesTest, ReductionsAgreeWithTheSerialReference) {
  PERCS_TRACE_SEED();
  for (const AlgorithmSpec& spec : SpecsOf(Collective::kReduce)) {
    for (int spes = 1; spes <= kSpes; ++spes) {
      for (std::uint32_t elements : {1u, 2u, 3u, 32u, 512u, 2048u}) {
        const bool all_to_one =
            spec.algorithm == Algorithm::kAllToOne || spec.algorithm == Algorithm::kAllToOneBlade;
        if (all_to_one && elements > kAllToOneElementsMax) continue;
        CollectiveLoop loop;
        loop.collective = Collective::kReduce;
        loop.spec = spec;
        loop.spes = spes;
        loop.elements = elements;
        loop.op = static_cast<ReduceOp>((spes + elements) % 3);
        loop.type = elements % 2 == 0 ? ReduceType::kFloat : ReduceType::kInt;
        ExpectRightBothWays(loop);
      }
    }
  }
}

// A random sequence of different collectives over different trees, the same for every SPE.
struct RandomCalls {
  int spes;
  std::uint64_t seed;
  int wrong = 0;
};

Task<> MakeRandomCalls(Spe& spe, RandomCalls* calls) {
  constexpr LsAddress kVector = 0x20000;
  Collectives group(spe, *CollectiveGroup::Create(calls->spes));
  RandomStream choice(calls->seed, "calls"),
      delay(calls->seed, "delay" + std::to_string(spe.index()));
  for (int call = 0; call < 60; ++call) {
    const auto collective = static_cast<Collective>(choice.Below(3));
    const std::vector<AlgorithmSpec> specs = SpecsOf(collective);
    const AlgorithmSpec spec = specs[choice.Below(static_cast<std::uint32_t>(specs.size()))];
    if (delay.Below(3) == 0) {
      spe.Compute(delay.Below(3'000'000));
      co_await spe.Sync();
    }
    if (collective == Collective::kBarrier) {
      co_await group.Barrier(spec);
    } else if (collective == Collective::kBroadcast) {
      std::uint8_t* const buffer = spe.local_store().at(group.buffer());
      std::memset(buffer, spe.index() == 0 ? call + 1 : 0, 256);
      co_await group.Broadcast(256, spec);
      if (buffer[0] != call + 1 || buffer[255] != call + 1) ++calls->wrong;
    } else {
      spe.local_store().Store<std::int32_t>(kVector, call + spe.index());
      co_await group.Reduce(kVector, 1, ReduceOp::kAdd, ReduceType::kInt, spec);
      const int sum = calls->spes * call + calls->spes * (calls->spes - 1) / 2;
      if (spe.index() == 0 && spe.local_store().Load<std::int32_t>(kVector) != sum) ++calls->wrong;
    }
  }
}

TEST(CollectivesTest, CallsOfDifferentTreesFollowEachOtherInAnyOrder) {
  PERCS_TRACE_SEED();
  for (int round = 0; round < 60; ++round) {
    RandomCalls calls{2 + round % 15, test::Seed() + static_cast<std::uint64_t>(round)};
    auto blade = *Blade::Create(Qs20());
    for (int i = 0; i < calls.spes; ++i) {
      ASSERT_TRUE(blade->RunSpe(i, [&calls](Spe& s) { return MakeRandomCalls(s, &calls); }).ok());
    }
    blade->Run(kNever);
    EXPECT_TRUE(blade->done()) << ::testing::PrintToString(blade->Result().blocked);
    EXPECT_EQ(calls.wrong, 0) << calls.spes << " SPEs, round " << round;
  }
}

TEST(CollectivesTest, OneSpeHasNobodyToWaitForHoweverManyTheCalls) {
  for (const Collective collective :
       {Collective::kBarrier, Collective::kBroadcast, Collective::kReduce}) {
    CollectiveLoop loop;
    loop.collective = collective;
    loop.spes = 1;
    const auto few = MeasureCollective(Qs20(), loop);
    // As many as would never end if each were made.
    loop.iterations = std::numeric_limits<std::uint64_t>::max();
    const auto most = MeasureCollective(Qs20(), loop);
    ASSERT_TRUE(few.ok() && most.ok()) << few.status() << most.status();
    EXPECT_EQ(few->nanoseconds, 0);
    EXPECT_EQ(most->nanoseconds, 0);
    EXPECT_EQ(most->wrong, 0u);
  }
}

TEST(CollectivesTest, OnlyTwoSignalsAndOneMessageCrossTheChipsInTheFormsForBlades) {
  constexpr std::uint64_t kCalls = 10;
  for (const Algorithm algorithm : {Algorithm::kAllToOneBlade, Algorithm::kTreeBlade}) {
    for (const Collective collective :
         {Collective::kBarrier, Collective::kBroadcast, Collective::kReduce}) {
      CollectiveLoop loop;
      loop.collective = collective;
      loop.spec = {algorithm, 3};
      loop.iterations = kCalls;
      const auto timing = MeasureCollective(Qs20(), loop);
      ASSERT_TRUE(timing.ok()) << timing.status();
      const BladeStats& stats = timing->blade.stats;
      EXPECT_EQ(stats.link_signals[0] + stats.link_signals[1], 2 * kCalls);
      EXPECT_EQ(stats.link_dmas[0] + stats.link_dmas[1],
                collective == Collective::kBarrier ? 0 : kCalls);
    }
  }
}

TEST(CollectivesTest, SignalsOfABarrierAreWhatItsStepsNeed) {
  CollectiveLoop loop;
  loop.iterations = 10;
  loop.spec = {Algorithm::kPairwise, 2};
  EXPECT_EQ(MeasureCollective(Qs20(), loop)->blade.stats.signals, 10u * 16 * 4);
  loop.spec = {Algorithm::kAllToOne, 2};
  EXPECT_EQ(MeasureCollective(Qs20(), loop)->blade.stats.signals, 10u * 30);
  loop.spec = {Algorithm::kAllToOneBlade, 2};
  EXPECT_EQ(MeasureCollective(Qs20(), loop)->blade.stats.signals, 10u * 30);
}

TEST(CollectivesTest, AutoIsNeverFarFromTheBest) {
  for (const Collective collective :
       {Collective::kBarrier, Collective::kBroadcast, Collective::kReduce}) {
    for (std::uint32_t bytes : {128u, 1024u, 4096u, 8192u}) {
      if (collective == Collective::kBarrier && bytes > 128) continue;
      for (int spes = 2; spes <= kSpes; ++spes) {
        double best = 1e9, automatic = 0;
        for (const AlgorithmSpec& spec : SpecsOf(collective)) {
          CollectiveLoop loop;
          loop.collective = collective;
          loop.spec = spec;
          loop.spes = spes;
          loop.bytes = bytes;
          loop.elements = bytes / 4;
          loop.iterations = 20;
          const auto timing = MeasureCollective(Qs20(), loop);
          if (!timing.ok()) continue;  // over the limit of all-to-one
          best = std::min(best, timing->nanoseconds);
          if (spec.algorithm == Algorithm::kAuto) automatic = timing->nanoseconds;
        }
        EXPECT_GT(automatic, 0) << spes << " SPEs, " << bytes << " bytes";
        EXPECT_LE(automatic, 1.15 * best)
            << NameOf(collective, BestAlgorithm(collective, spes, bytes)) << ", " << spes
            << " SPEs, " << bytes << " bytes";
      }
    }
  }
}

TEST(CollectivesTest, WhatCannotBeIsRefusedByName) {
  EXPECT_THAT(CollectiveGroup::Create(17).status().message(), HasSubstr("17 SPEs"));
  EXPECT_THAT(CollectiveGroup::Create(0).status().message(), HasSubstr("1 to 16"));
  EXPECT_THAT(CollectiveGroup::Create(16, 0x3f000).status().message(), HasSubstr("buffer"));
  CollectiveLoop loop;
  loop.collective = Collective::kReduce;
  loop.elements = 513;
  loop.spec = {Algorithm::kAllToOneBlade, 2};
  EXPECT_THAT(MeasureCollective(Qs20(), loop).status().message(),
              HasSubstr("513 elements; ATORedB_Opt takes 1 to 512"));
  loop.elements = 2049;
  loop.spec = {Algorithm::kTreeBlade, 2};
  EXPECT_THAT(MeasureCollective(Qs20(), loop).status().message(), HasSubstr("1 to 2048"));
  loop.collective = Collective::kBroadcast;
  loop.bytes = 17 * 1024;
  EXPECT_THAT(MeasureCollective(Qs20(), loop).status().message(), HasSubstr("17408 bytes"));
  for (const std::uint32_t beyond : {256u << 10, 0xffffffffu}) {  // what no local store holds
    loop.collective = Collective::kReduce;
    loop.elements = beyond;
    loop.spec = {Algorithm::kTree, 2};
    EXPECT_THAT(MeasureCollective(Qs20(), loop).status().message(), HasSubstr("1 to 2048"));
    loop.collective = Collective::kBroadcast;
    loop.bytes = beyond;
    EXPECT_THAT(MeasureCollective(Qs20(), loop).status().message(), HasSubstr("1 to 16384"));
  }
  loop.bytes = 64;
  loop.spec = {Algorithm::kPairwise, 2};
  EXPECT_THAT(MeasureCollective(Qs20(), loop).status().message(), HasSubstr("pairwise"));
}

TEST(CollectivesTest, AlgorithmsAreFoundByTheNamesOfThePaper) {
  const auto found = AlgorithmNamed(Collective::kBroadcast, "TTBcastB_Opt D3");
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(*found, (AlgorithmSpec{Algorithm::kTreeBlade, 3}));
  EXPECT_EQ(AlgorithmNamed(Collective::kBarrier, "PEBar")->algorithm, Algorithm::kPairwise);
  EXPECT_EQ(AlgorithmNamed(Collective::kReduce, "ATORed")->algorithm, Algorithm::kAllToOne);
  EXPECT_THAT(AlgorithmNamed(Collective::kReduce, "PERed").status().message(),
              HasSubstr("ATORed, ATORedB_Opt, TTRed[ D<degree>]"));
  EXPECT_FALSE(AlgorithmNamed(Collective::kBarrier, "TTBar D1").ok());
  EXPECT_FALSE(AlgorithmNamed(Collective::kBarrier, "ATOBar D2").ok());
}

}  // namespace
}  // namespace percs::cell
