// How rows are judged: one tolerance for each kind, restated rows never, ranges by the nearer end.
#include "emulator/experiments/judge.h"

#include <gtest/gtest.h>

#include <cmath>

namespace percs {
namespace {

ValidationRow RowOf(const char* id, PublishedFigure published, double emulated,
                    RowKind kind = RowKind::kPredicted) {
  return {id, "", std::move(published), emulated, "us", kind, {}};
}

TEST(Judge, TolerancesAreFiveAndFifteenPercent) {
  for (const double sign : {-1.0, 1.0}) {
    const auto holds = [sign](double error, RowKind kind) {
      return Holds(RowOf("a", PublishedFigure::At(200), 200 * (1 + sign * error), kind));
    };
    EXPECT_TRUE(holds(0.05, RowKind::kCalibrated));
    EXPECT_FALSE(holds(0.051, RowKind::kCalibrated));
    EXPECT_TRUE(holds(0.15, RowKind::kPredicted));
    EXPECT_FALSE(holds(0.151, RowKind::kPredicted));
  }
}

TEST(Judge, RestatedAndUnexplainedRowsAndThoseWithoutAFigureAreNeverJudged) {
  for (const RowKind kind : {RowKind::kRestated, RowKind::kUnexplained}) {
    const ValidationRow row = RowOf("a", PublishedFigure::At(7), 7, kind);
    EXPECT_FALSE(IsJudged(row));
    EXPECT_FALSE(Holds(row));
  }
  EXPECT_FALSE(IsJudged(RowOf("a", PublishedFigure::None(), 7)));
  EXPECT_FALSE(IsJudged(RowOf("a", PublishedFigure::Words("noticeably less"), 7)));
  EXPECT_TRUE(std::isnan(RelativeError(RowOf("a", PublishedFigure::None(), 7))));
}

TEST(Judge, ErrorsAreFromTheNearerEndOfARange) {
  const auto error = [](double emulated) {
    return RelativeError(RowOf("a", PublishedFigure::Between(2, 4), emulated));
  };
  EXPECT_DOUBLE_EQ(error(3), 0);
  EXPECT_DOUBLE_EQ(error(1), -0.5);
  EXPECT_DOUBLE_EQ(error(5), 0.25);
  EXPECT_DOUBLE_EQ(RelativeError(RowOf("a", PublishedFigure::AtLeast(500), 250)), -0.5);
  EXPECT_DOUBLE_EQ(RelativeError(RowOf("a", PublishedFigure::AtLeast(500), 5000)), 0);
  EXPECT_DOUBLE_EQ(RelativeError(RowOf("a", PublishedFigure::AtMost(4), 5)), 0.25);
  EXPECT_EQ(RelativeError(RowOf("a", PublishedFigure::At(0), 0)), 0);
  EXPECT_TRUE(std::isinf(RelativeError(RowOf("a", PublishedFigure::At(0), 1))));
}

TEST(Judge, SummariesCountByKindAndTakeStatisticsOfSingleFigures) {
  std::vector<ValidationRow> rows;
  for (int i = 0; i <= 10; ++i)
    rows.push_back(RowOf("p", PublishedFigure::At(100), 100 + i));  // 0 to 10 %
  rows.push_back(RowOf("range", PublishedFigure::Between(1, 2), 3));
  rows.push_back(RowOf("c", PublishedFigure::At(100), 94, RowKind::kCalibrated));
  rows.push_back(RowOf("r", PublishedFigure::At(1), 1, RowKind::kRestated));
  const auto summaries = SummarizeErrors("m", rows);
  ASSERT_EQ(summaries.size(), 4u);
  EXPECT_EQ(summaries[0].kind, "calibrated");
  EXPECT_EQ(summaries[0].held, 0);
  const ErrorSummary& predicted = summaries[1];
  EXPECT_EQ(predicted.rows, 12);
  EXPECT_EQ(predicted.judged, 12);
  EXPECT_EQ(predicted.held, 11);
  EXPECT_EQ(predicted.figures, 11);
  EXPECT_NEAR(predicted.median, 0.05, 1e-12);
  EXPECT_NEAR(predicted.percentile_90, 0.09, 1e-12);
  EXPECT_NEAR(predicted.worst, 0.5, 1e-12);
  EXPECT_EQ(predicted.worst_id, "range");
  EXPECT_EQ(summaries[2].kind, "restated");
  EXPECT_EQ(summaries[2].judged, 0);
  EXPECT_EQ(summaries[3].kind, "judged");
  EXPECT_EQ(summaries[3].judged, 13);
}

TEST(Judge, PercentilesLieBetweenNeighbours) {
  EXPECT_EQ(Percentile({}, 0.5), 0);
  EXPECT_EQ(Percentile({3}, 0.9), 3);
  EXPECT_DOUBLE_EQ(Percentile({1, 2}, 0.5), 1.5);
}

}  // namespace
}  // namespace percs
