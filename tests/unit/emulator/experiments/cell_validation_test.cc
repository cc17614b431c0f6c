// The validation of the blade: every published figure has its row, and what holds is pinned.
#include "emulator/experiments/cell_validation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <set>
#include <string>
#include <vector>

namespace percs::cell {
namespace {

TEST(CellValidationTest, EveryPublishedFigureHasItsRowAndTheMissesAreTheOnesTheDocumentationNames) {
  const auto rows = ValidateCell();
  ASSERT_TRUE(rows.ok()) << rows.status();
  std::set<std::string> ids, misses;
  for (const ValidationRow& row : *rows) {
    EXPECT_TRUE(ids.insert(row.id).second) << row.id << " twice";
    EXPECT_EQ(row.published.empty(),
              row.id.find("CELL-withheld-") == 0 || row.id.find("CELL-barrier-") == 0 ||
                  row.id.find("CELL-bcast-") == 0 || row.id.find("CELL-reduce-") == 0)
        << row.id;
    if (row.published.empty()) {
      EXPECT_EQ(row.role, ValidationRole::kPredicted) << row.id;
    }
    if (row.holds == ValidationRow::Holds::kNo) misses.insert(row.id);
  }
  for (int i = 1; i <= 62; ++i) {
    char id[16];
    std::snprintf(id, sizeof(id), "CELL-%03d", i);
    const bool withheld = i == 19 || i == 23 || i == 24;
    EXPECT_EQ(ids.count(id), withheld ? 0u : 1u) << id;
  }
  EXPECT_THAT(misses, ::testing::ElementsAre("CELL-031", "CELL-shape-reduce"));
}

}  // namespace
}  // namespace percs::cell
