// Rows of Roadrunner's messages hold, rows are those of the list, and perf speaks of any two SPEs.
#include "emulator/experiments/roadrunner_validation.h"

#include <gtest/gtest.h>

#include <cmath>

#include "emulator/experiments/judge.h"
#include "emulator/experiments/roadrunner_perf.h"

namespace percs::roadrunner {
namespace {

TEST(ValidateRoadrunner, JudgedRowsOfMessagesHoldAndTheMachineIsBuiltSo) {
  std::vector<ValidationRow> rows;
  for (const char* const only : {"RR-00", "RR-02", "RR-03", "RR-04"}) {
    const auto some = ValidateRoadrunner(only);
    ASSERT_TRUE(some.ok()) << some.status();
    rows.insert(rows.end(), some->begin(), some->end());
  }
  EXPECT_GT(rows.size(), 28u);
  for (const ValidationRow& row : rows) {
    if (IsJudged(row)) {
      EXPECT_TRUE(Holds(row)) << row.id << " " << row.quantity << ": " << row.emulated;
    } else if (row.published.has_bounds() && row.id != "RR-045") {  // that one is a limit
      EXPECT_LE(std::abs(RelativeError(row)), kCalibratedTolerance) << row.id << row.emulated;
    }
  }
}

TEST(Perf, LatencyGrowsWithDistanceAndWithCrossbars) {
  const RoadrunnerParameters p = DefaultParameters();
  Time last = 0;
  for (const Rank b : {1, 8, 16, 32, 20 * 32, 200 * 32}) {
    const auto result = MeasurePerf(p, 0, b, 64);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_GT(result->half_round_trip, last) << b;
    last = result->half_round_trip;
  }
  EXPECT_EQ(MeasurePerf(p, 0, 200 * 32, 64)->crossbars, 5);
  EXPECT_EQ(MeasurePerf(p, 0, 200 * 32, 64)->digest, MeasurePerf(p, 0, 200 * 32, 64)->digest);
  EXPECT_FALSE(MeasurePerf(p, 3, 3, 64).ok());
  EXPECT_FALSE(MeasurePerf(p, 3, 4, kPerfBytesMax + 1).ok());
}

// Three transfers one after the other: the rate between blades stays under a third of the slowest
// link's.
TEST(Perf, LegsBetweenTribladesNeverOverlap) {
  const RoadrunnerParameters p = DefaultParameters();
  for (const std::uint32_t bytes : {1024u, 16'384u, 131'072u}) {
    const auto far = MeasurePerf(p, 0, 32, bytes);
    ASSERT_TRUE(far.ok());
    EXPECT_LT(far->gigabytes_per_second, 2.0 / 3);
    EXPECT_GE(far->half_round_trip, 9'240 * kNanosecond + 3 * TransferTime(bytes, 2.0));
  }
}

}  // namespace
}  // namespace percs::roadrunner
