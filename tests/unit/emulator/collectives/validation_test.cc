// Method: published rows that take seconds. Of those that set a parameter and of those that were
// predicted, the ones known to miss are named, so that a change which makes another one miss is noticed.
#include "emulator/collectives/validation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "emulator/collectives/smartmap_validation.h"
#include "fmt/format.h"

namespace percs {
namespace {

std::vector<std::string> Missed(const std::vector<ValidationRow>& rows, ValidationRole role) {
  std::vector<std::string> missed;
  for (const ValidationRow& row : rows) {
    fmt::print("{} {} {:.3f} {}: {}\n", row.id, row.published, row.emulated, row.unit, row.quantity);
    if (row.role == role && row.holds == ValidationRow::Holds::kNo) missed.push_back(row.id);
  }
  return missed;
}

TEST(P7ihValidationTest, RowsOfOneNodeHold) {
  const auto ten = ValidateP7ih("P7IH-01");
  ASSERT_TRUE(ten.ok()) << ten.status();
  EXPECT_EQ(ten->size(), 9u);
  EXPECT_THAT(Missed(*ten, ValidationRole::kCalibrated), testing::ElementsAre("P7IH-019"));
  EXPECT_THAT(Missed(*ten, ValidationRole::kPredicted), testing::ElementsAre("P7IH-011"));
}

TEST(P7ihValidationTest, RowsOfManyNodesHold) {
  const auto two = ValidateP7ih("P7IH-025");
  const auto all = ValidateP7ih("P7IH-026");
  ASSERT_TRUE(two.ok() && all.ok()) << two.status() << all.status();
  EXPECT_EQ(two->size(), 1u);
  EXPECT_THAT(Missed(*two, ValidationRole::kCalibrated), testing::IsEmpty());
  EXPECT_THAT(Missed(*all, ValidationRole::kCalibrated), testing::IsEmpty());
}

TEST(P7ihValidationTest, CellsThatSetAParameterHold) {
  for (const char* id : {"fig13.p2p.16KB.32", "fig13.p2p.128KB.32", "fig13.hybrid.8MB.32",
                         "fig13.hybrid.512KB.64"}) {
    const auto cell = ValidateP7ih(id);
    ASSERT_TRUE(cell.ok()) << cell.status();
    ASSERT_EQ(cell->size(), 1u) << id;
    EXPECT_EQ(cell->front().role, ValidationRole::kCalibrated) << id;
    EXPECT_THAT(Missed(*cell, ValidationRole::kCalibrated), testing::IsEmpty());
  }
}

TEST(SmartmapValidationTest, ThresholdIsWherePublished) {
  const auto rows = ValidateSmartmap();
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_THAT(Missed(*rows, ValidationRole::kSpecified), testing::IsEmpty());
}

}  // namespace
}  // namespace percs
