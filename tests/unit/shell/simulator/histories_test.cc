// Histories of the control plane in a simulated world, from fixed seeds: every run tries the same
// ones. control_campaign searches for others.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "absl/strings/str_join.h"
#include "tests/simulator/history.h"
#include "tests/support/seed.h"

namespace percs::sim {
namespace {

constexpr std::uint64_t kHistories = 200;
// What the search has found, and what has been mended since, is tried here from then on.
const std::vector<std::uint64_t> kFoundHistories = {
    10147,    10194,    10211,    10262,    10832,    11237,    12012,   12501,
    234,      4009543,  4058803,  4091368,  4107494,  4208177,  8147765, 12011926,
    15013916, 15035076, 16019706, 18052815, 21005739, 22034076, 26033255};

std::vector<std::uint64_t> Seeds() {
  std::vector<std::uint64_t> seeds = kFoundHistories;
  const std::uint64_t first = test::Seed() * 1'000'000;
  for (std::uint64_t seed = first; seed < first + kHistories; ++seed) seeds.push_back(seed);
  return seeds;
}

TEST(SimulatedHistoryTest, NoHistoryBreaksAPromise) {
  PERCS_TRACE_SEED();
  Outcome sum;
  std::uint64_t finished = 0;
  for (const std::uint64_t seed : Seeds()) {
    const Outcome outcome = RunHistory(seed);
    EXPECT_EQ(outcome.failure, "") << "control_campaign --print " << seed << "\n"
                                   << absl::StrJoin(outcome.log, "\n");
    finished += outcome.finished;
    sum.crashes += outcome.crashes;
    sum.losses += outcome.losses;
    sum.rejoins += outcome.rejoins;
    sum.commands += outcome.commands;
  }
  // What it is for does happen in them.
  EXPECT_GE(finished, kHistories / 2);
  EXPECT_GE(sum.crashes, kHistories / 2);
  EXPECT_GE(sum.losses, kHistories / 10);
  EXPECT_GE(sum.rejoins, kHistories / 50);
  EXPECT_GE(sum.commands, kHistories);
}

TEST(SimulatedHistoryTest, TheSameSeedIsTheSameHistory) {
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    const Outcome one = RunHistory(seed), other = RunHistory(seed);
    EXPECT_EQ(one.trace, other.trace) << seed;
    EXPECT_EQ(one.log, other.log) << seed;
  }
}

}  // namespace
}  // namespace percs::sim
