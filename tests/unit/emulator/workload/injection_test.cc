// Method: many gaps of one stream, their mean and the structure of bursts, within bounds that no
// seed comes near; single draws against the arithmetic of the class comment.
#include "emulator/workload/injection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "emulator/sim/run.h"
#include "tests/support/seed.h"

namespace percs {
namespace {

constexpr Time kFlitTime = 1'333;

PatternWorkload Load(double load, std::uint64_t burst_messages = 1, double burst_load = 1) {
  PatternWorkload w;
  w.message_bytes = 1'280;  // ten flits
  w.load = load;
  w.burst_messages = burst_messages;
  w.burst_load = burst_load;
  return w;
}

std::vector<Time> Gaps(const PatternWorkload& w, int count) {
  InjectionProcess process(w, kFlitTime);
  RandomStream random(test::Seed(), "test");
  std::vector<Time> gaps;
  for (int i = 0; i < count; ++i) gaps.push_back(process.Gap(random));
  return gaps;
}

double Mean(const std::vector<Time>& gaps) {
  double sum = 0;
  for (const Time gap : gaps) sum += static_cast<double>(gap);
  return sum / static_cast<double>(gaps.size());
}

// Of a Poisson process the variance of a gap is the square of its mean; bursts make it larger.
double SquaredVariation(const std::vector<Time>& gaps) {
  const double mean = Mean(gaps);
  double sum = 0;
  for (const Time gap : gaps)
    sum += (static_cast<double>(gap) - mean) * (static_cast<double>(gap) - mean);
  return sum / static_cast<double>(gaps.size()) / (mean * mean);
}

TEST(InjectionProcess, WithoutBurstsGapsAreThoseOfAPoissonSource) {
  PERCS_TRACE_SEED();
  const auto gaps = Gaps(Load(0.25), 100'000);
  EXPECT_NEAR(Mean(gaps), 10 * kFlitTime / 0.25, 800);
  EXPECT_NEAR(SquaredVariation(gaps), 1, 0.06);
}

// One flit per message at load p: a slot has a message with probability p, so gaps have mean 1 / p
// slots and variance (1 - p) / p^2.
TEST(InjectionProcess, ABernoulliSourceDecidesInEachFlitTime) {
  PERCS_TRACE_SEED();
  for (const double p : {0.05, 0.3, 0.9}) {
    PatternWorkload w = Load(p);
    w.message_bytes = 128;
    w.injection = Injection::kBernoulli;
    const auto gaps = Gaps(w, 100'000);
    std::size_t next_slot = 0;
    for (const Time gap : gaps) {
      ASSERT_EQ(gap % kFlitTime, 0);
      ASSERT_GE(gap, kFlitTime);
      next_slot += gap == kFlitTime;
    }
    EXPECT_NEAR(Mean(gaps) * p / kFlitTime, 1, 0.02) << p;
    EXPECT_NEAR(SquaredVariation(gaps), 1 - p, 0.05) << p;
    EXPECT_NEAR(static_cast<double>(next_slot) / 100'000, p, 0.01);
  }
}

TEST(InjectionProcess, ABernoulliSourceAtFullLoadUsesEverySlot) {
  PatternWorkload w = Load(1);
  w.message_bytes = 128;
  w.injection = Injection::kBernoulli;
  for (const Time gap : Gaps(w, 1000)) ASSERT_EQ(gap, kFlitTime);
}

TEST(InjectionProcess, BurstsKeepTheMeanLoadAndVaryMore) {
  PERCS_TRACE_SEED();
  const auto gaps = Gaps(Load(0.25, 20, 0.5), 400'000);
  EXPECT_NEAR(Mean(gaps) / (10 * kFlitTime / 0.25), 1, 0.06);
  EXPECT_GT(SquaredVariation(gaps), 4);
}

TEST(InjectionProcess, WithinABurstMessagesComeAtItsLoad) {
  const MeanGaps gaps = MeanGapsOf(Load(0.25, 20, 0.5), kFlitTime);
  EXPECT_DOUBLE_EQ(gaps.message_ps, 10 * kFlitTime / 0.5);
  // 20 messages take as long as at a load of 0.25: 19 gaps within the burst, and the pause.
  EXPECT_DOUBLE_EQ(gaps.pause_ps, 20 * 10 * kFlitTime / 0.25 - 19 * 10 * kFlitTime / 0.5);
  EXPECT_EQ(MeanGapsOf(Load(0.25), kFlitTime).pause_ps, 0);
}

TEST(InjectionProcess, BurstsHaveTheMeanLengthThatIsAskedFor) {
  PERCS_TRACE_SEED();
  // Pauses are a thousand times longer than what is between messages of a burst.
  const auto gaps = Gaps(Load(0.0001, 5, 1), 100'000);
  int pauses = 0;
  for (const Time gap : gaps) pauses += gap > 300 * kFlitTime ? 1 : 0;
  EXPECT_NEAR(100'000.0 / pauses, 5, 0.3);
}

TEST(NegativeLog, AgreesWithTheLibraryAndOneGivesNothing) {
  EXPECT_EQ(NegativeLog(1.0), 0);
  for (const double u : {0.999, 0.5, 0.3, 1e-3, 1e-15}) {
    EXPECT_NEAR(NegativeLog(u), -std::log(u), 1e-12 * (1 - std::log(u)));
  }
}

// Two hubs, each with at most n messages that are not acknowledged: while the network is idle but
// for them, n messages take one round trip, whatever n is.
TEST(ClosedLoop, RateIsOutstandingMessagesPerRoundTrip) {
  const auto run = [](std::uint64_t outstanding) {
    Scenario scenario;
    scenario.topology = {1, 1, 2, 0};
    PatternWorkload w;
    w.pattern = Pattern::kNeighbor;
    w.reliable = true;
    w.load = 0;
    w.message_bytes = 128;
    w.outstanding = outstanding;
    w.warm_up = 100 * kMicrosecond;
    w.measure = 1000 * kMicrosecond;
    scenario.workload = w;
    const auto result = RunScenario(scenario, {});
    EXPECT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->total.messages_delivered, result->total.messages_sent);
    return static_cast<double>(result->total.measured_bytes_accepted);
  };
  const double one = run(1);
  EXPECT_GT(one, 0);
  for (const std::uint64_t n : {2, 3, 5}) {
    EXPECT_NEAR(run(n) / one, static_cast<double>(n), 0.05 * static_cast<double>(n)) << n;
  }
}

// No acknowledgement comes back within the phase.
TEST(ClosedLoop, WithoutALoadMessagesUnderWayAreBounded) {
  Scenario scenario;
  scenario.topology = {1, 1, 2, 0};
  scenario.parameters.ll.wire = kMillisecond;
  PatternWorkload w;
  w.reliable = true;
  w.load = 0;
  w.measure = kMicrosecond;
  scenario.workload = w;
  const auto result = RunScenario(scenario, {});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->total.measured_bytes_offered, 2 * 4096 * w.message_bytes);
}

TEST(ClosedLoop, WhatClosesNoLoopIsRefused) {
  const auto error = [](bool reliable, double load, Injection injection,
                        std::uint64_t bytes = 2048) {
    Scenario scenario;
    scenario.topology = {1, 1, 2, 0};
    PatternWorkload w;
    w.pattern = Pattern::kNeighbor;
    w.reliable = reliable;
    w.load = load;
    w.message_bytes = bytes;
    w.count = 10;
    w.outstanding = injection == Injection::kPoisson ? 4 : 0;
    w.injection = injection;
    scenario.workload = w;
    return std::string(RunScenario(scenario, {}).status().message());
  };
  EXPECT_EQ(error(true, 0, Injection::kPoisson), "");
  EXPECT_THAT(error(false, 0, Injection::kPoisson), testing::HasSubstr("write `reliable: true`"));
  EXPECT_THAT(error(true, 0.5, Injection::kPoisson), testing::HasSubstr("leave out load"));
  EXPECT_THAT(error(true, 0, Injection::kBernoulli), testing::HasSubstr("is of a load"));
  EXPECT_EQ(error(true, 0.5, Injection::kBernoulli), "");
  EXPECT_EQ(error(true, 0.5, Injection::kBernoulli, 64), "");
  EXPECT_THAT(error(true, 0.5, Injection::kBernoulli, 63),
              testing::HasSubstr("at most one message per flit time"));
}

}  // namespace
}  // namespace percs
