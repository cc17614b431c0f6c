// Method: published rows that take seconds. Of those that set a parameter and of those that were
// predicted, the ones known to miss are named, so that a change which makes another one miss is
// noticed.
#include "emulator/experiments/p7ih_validation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "emulator/experiments/judge.h"
#include "emulator/experiments/smartmap_validation.h"
#include "fmt/format.h"

namespace percs {
namespace {

std::vector<std::string> Missed(const std::vector<ValidationRow>& rows, RowKind kind) {
  std::vector<std::string> missed;
  for (const ValidationRow& row : rows) {
    fmt::print("{} {} {:.3f} {}: {}\n", row.id, row.published.text, row.emulated, row.unit,
               row.quantity);
    if (row.kind == kind && IsJudged(row) && !Holds(row)) missed.push_back(row.id);
  }
  return missed;
}

TEST(P7ihValidationTest, RowsOfOneNodeHold) {
  const auto ten = ValidateP7ih("P7IH-01");
  ASSERT_TRUE(ten.ok()) << ten.status();
  EXPECT_EQ(ten->size(), 9u);
  EXPECT_THAT(Missed(*ten, RowKind::kCalibrated), testing::IsEmpty());
  EXPECT_THAT(Missed(*ten, RowKind::kPredicted), testing::ElementsAre("P7IH-011"));
}

TEST(P7ihValidationTest, RowsOfManyNodesHold) {
  const auto latencies = ValidateP7ih("P7IH-02");
  ASSERT_TRUE(latencies.ok()) << latencies.status();
  EXPECT_EQ(latencies->size(), 10u);
  EXPECT_THAT(Missed(*latencies, RowKind::kCalibrated), testing::IsEmpty());
  EXPECT_THAT(Missed(*latencies, RowKind::kPredicted), testing::ElementsAre("P7IH-024"));
  const auto crossover = ValidateP7ih("P7IH-034");
  ASSERT_TRUE(crossover.ok() && crossover->size() == 1) << crossover.status();
  EXPECT_EQ(crossover->front().published.text, "4-8");
  EXPECT_THAT(Missed(*crossover, RowKind::kPredicted), testing::IsEmpty());
}

// Twelve cells set parameters; those that miss among the others are known.
TEST(P7ihValidationTest, CellsOfOneNodeAndOfTwoHold) {
  std::vector<std::string> calibrated, missed;
  int cells = 0;
  for (const char* size : {"1KB", "16KB", "64KB", "128KB", "512KB", "1MB", "2MB", "4MB", "8MB"}) {
    for (const char* layer : {"p2p", "hybrid"}) {
      for (const int cores : {32, 64}) {
        const std::string id = fmt::format("fig13.{}.{}.{}", layer, size, cores);
        const auto cell = ValidateP7ih(id);
        ASSERT_TRUE(cell.ok() && !cell->empty()) << id << cell.status();
        EXPECT_EQ(cell->front().id, id);
        ++cells;
        if (cell->front().kind == RowKind::kCalibrated) calibrated.push_back(id);
        if (!Holds(cell->front())) missed.push_back(id);
      }
    }
  }
  EXPECT_EQ(cells, 36);
  EXPECT_EQ(calibrated.size(), 12u);
  EXPECT_THAT(missed, testing::UnorderedElementsAre(
                          "fig13.hybrid.1KB.64", "fig13.p2p.16KB.64", "fig13.hybrid.16KB.32",
                          "fig13.hybrid.64KB.32", "fig13.hybrid.64KB.64", "fig13.hybrid.512KB.64"));
}

// What the two transports are for: no cell of a hybrid from 128 cores on sets a parameter.
TEST(P7ihValidationTest, HybridsOnMoreNodesArePredicted) {
  for (const char* size : {"64KB", "128KB", "2MB", "8MB"}) {
    for (const int cores : {128, 256}) {
      const std::string id = fmt::format("fig13.hybrid.{}.{}", size, cores);
      const auto cell = ValidateP7ih(id);
      ASSERT_TRUE(cell.ok() && !cell->empty()) << id << cell.status();
      EXPECT_EQ(cell->front().kind, RowKind::kPredicted) << id;
      EXPECT_TRUE(Holds(cell->front())) << id;
    }
  }
}

TEST(SmartmapValidationTest, ThresholdIsWherePublished) {
  const auto rows = ValidateSmartmap("SMAP-008");
  ASSERT_TRUE(rows.ok()) << rows.status();
  ASSERT_EQ(rows->size(), 1u);
  EXPECT_EQ(rows->front().kind, RowKind::kRestated);
  EXPECT_EQ(RelativeError(rows->front()), 0);
}

}  // namespace
}  // namespace percs
