// Method: many gaps of one stream, their mean and the structure of bursts, within bounds that no
// seed comes near; single draws against the arithmetic of the class comment.
#include "emulator/workload/injection.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

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

}  // namespace
}  // namespace percs
