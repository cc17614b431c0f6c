#include "emulator/experiments/judge.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "fmt/format.h"

namespace percs {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

ErrorSummary SummarizeSome(absl::Span<const ValidationRow> rows,
                           const std::function<bool(const ValidationRow&)>& of) {
  ErrorSummary summary;
  std::vector<double> errors;
  for (const ValidationRow& row : rows) {
    if (!of(row)) continue;
    ++summary.rows;
    if (!IsJudged(row)) continue;
    ++summary.judged;
    summary.held += Holds(row);
    const double error = std::abs(RelativeError(row));
    if (row.published.is_one_value()) errors.push_back(error);
    if (summary.worst_id.empty() || error > summary.worst) {
      summary.worst = error;
      summary.worst_id = row.id;
    }
  }
  std::sort(errors.begin(), errors.end());
  summary.figures = static_cast<int>(errors.size());
  summary.median = Percentile(errors, 0.5);
  summary.percentile_90 = Percentile(errors, 0.9);
  return summary;
}

}  // namespace

const char* RowKindName(RowKind kind) {
  constexpr const char* kNames[kRowKinds] = {"calibrated", "predicted", "restated", "unexplained"};
  return kNames[static_cast<int>(kind)];
}

PublishedFigure PublishedFigure::At(double value) {
  return {fmt::format("{:g}", value), value, value};
}
PublishedFigure PublishedFigure::Between(double low, double high) {
  return {fmt::format("{:g}-{:g}", low, high), low, high};
}
PublishedFigure PublishedFigure::AtLeast(double value) {
  return {fmt::format(">={:g}", value), value, kInfinite};
}
PublishedFigure PublishedFigure::AtMost(double value) {
  return {fmt::format("<={:g}", value), -kInfinite, value};
}
PublishedFigure PublishedFigure::Words(std::string text) {
  return {std::move(text), -kInfinite, kInfinite};
}

double RelativeError(const ValidationRow& row) {
  const PublishedFigure& published = row.published;
  if (!published.has_bounds()) return std::nan("");
  const double end = std::clamp(row.emulated, published.low, published.high);
  if (end == row.emulated) return 0;
  return end == 0 ? std::copysign(kInfinite, row.emulated) : (row.emulated - end) / std::abs(end);
}

bool IsJudged(const ValidationRow& row) {
  return (row.kind == RowKind::kCalibrated || row.kind == RowKind::kPredicted) &&
         row.published.has_bounds();
}

bool Holds(const ValidationRow& row) {
  constexpr double kRounding = 1e-9;  // for a figure at the tolerance
  const double tolerance =
      row.kind == RowKind::kCalibrated ? kCalibratedTolerance : kPredictedTolerance;
  return IsJudged(row) && std::abs(RelativeError(row)) <= tolerance + kRounding;
}

double Percentile(absl::Span<const double> sorted, double share) {
  if (sorted.empty()) return 0;
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

std::vector<ErrorSummary> SummarizeErrors(const std::string& family,
                                          absl::Span<const ValidationRow> rows) {
  std::vector<ErrorSummary> summaries;
  const auto add = [&](const char* kind, const std::function<bool(const ValidationRow&)>& of) {
    ErrorSummary summary = SummarizeSome(rows, of);
    if (summary.rows == 0) return;
    summary.family = family;
    summary.kind = kind;
    summaries.push_back(std::move(summary));
  };
  for (int k = 0; k < kRowKinds; ++k) {
    const auto kind = static_cast<RowKind>(k);
    add(RowKindName(kind), [kind](const ValidationRow& row) { return row.kind == kind; });
  }
  add("judged", IsJudged);
  return summaries;
}

}  // namespace percs
