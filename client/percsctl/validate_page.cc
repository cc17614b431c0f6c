#include "client/percsctl/validate_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace percs {
namespace {

// Colours that colour-blind readers can tell apart (Okabe and Ito).
constexpr const char* kColours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7"};
constexpr double kErrorShown = 60;  // percent; what lies beyond is drawn at the edge

constexpr const char* kHead = R"(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"/><title>Published and emulated figures</title>
<style>
body{font:15px/1.5 sans-serif;color:#222;max-width:1120px;margin:2em auto;padding:0 1em}
h1{font-size:1.5em}h2{font-size:1.15em;margin-top:2em}
table{border-collapse:collapse;font-size:13px;width:100%}
th,td{padding:3px 8px;border-bottom:1px solid #ddd;text-align:right;vertical-align:top}
th{border-bottom:2px solid #888}.l{text-align:left}.misses{color:#b00020;font-weight:bold}
svg{width:100%;height:auto;font-family:sans-serif}
</style></head><body>
<h1>Published and emulated figures</h1>
<p>Calibrated rows set a parameter and are judged at 5&#160;%. Predicted ones set none and are
judged at 15&#160;%. Restated rows are constants of the machine, or arithmetic on other rows, and
unexplained ones are those for which facts are missing: both are shown and never judged.</p>
)";

std::string Escape(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '&') {
      escaped += "&amp;";
    } else if (c == '<') {
      escaped += "&lt;";
    } else if (c == '>') {
      escaped += "&gt;";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

struct Point {
  double x, y;
};

// The mark of a row: its machine's colour, filled if calibrated, a cross if unexplained.
std::string MarkAt(const ValidationRow& row, Point at, const char* colour) {
  const std::string title =
      fmt::format("<title>{}: {} ({} {}, published {}, {})</title>", Escape(row.id),
                  Escape(row.quantity), fmt::format("{:.4g}", row.emulated), Escape(row.unit),
                  Escape(row.published.text), ErrorText(row));
  if (row.kind == RowKind::kUnexplained) {
    return fmt::format(
        "<path d=\"M{0:.1f} {1:.1f}l8 8m0 -8l-8 8\" stroke=\"#666\" stroke-width=\"1.6\" "
        "fill=\"none\">{2}</path>\n",
        at.x - 4, at.y - 4, title);
  }
  return fmt::format(
      "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" stroke=\"{}\" stroke-width=\"1.5\" "
      "fill=\"{}\" fill-opacity=\"0.75\">{}</circle>\n",
      at.x, at.y, colour, row.kind == RowKind::kCalibrated ? colour : "#fff", title);
}

std::string TextAt(Point at, const char* anchor, const std::string& text, int size = 12) {
  return fmt::format(
      "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" font-size=\"{}\" fill=\"#333\">{}"
      "</text>\n",
      at.x, at.y, anchor, size, Escape(text));
}

std::string LineBetween(Point from, Point to, const char* style) {
  return fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" {}/>\n", from.x,
                     from.y, to.x, to.y, style);
}

constexpr const char* kGrid = "stroke=\"#e4e4e4\"";
constexpr const char* kAxis = "stroke=\"#444\"";

bool IsDrawn(const ValidationRow& row) {
  return (IsJudged(row) || row.kind == RowKind::kUnexplained) && row.published.has_bounds() &&
         row.emulated > 0;
}

// The published figure that a mark stands at: of a range, the end or place nearest to the emulated
// value.
double Shown(const ValidationRow& row) {
  return std::clamp(row.emulated, row.published.low, row.published.high);
}

std::string Legend(const std::vector<ValidatedMachine>& machines, Point at) {
  std::string svg;
  const auto entry = [&](const ValidationRow& row, const char* colour, const std::string& text) {
    svg += MarkAt(row, {at.x, at.y - 4}, colour) + TextAt({at.x + 10, at.y}, "start", text);
    at.x += 28 + 7.0 * static_cast<double>(text.size());
  };
  ValidationRow row;
  row.kind = RowKind::kCalibrated;
  for (std::size_t m = 0; m < machines.size(); ++m) {
    entry(row, kColours[m % std::size(kColours)], machines[m].name);
  }
  at.x += 16;
  entry(row, "#555", "calibrated");
  row.kind = RowKind::kPredicted;
  entry(row, "#555", "predicted");
  row.kind = RowKind::kUnexplained;
  entry(row, "#555", "unexplained");
  return svg;
}

// Both axes logarithmic; every figure in its own unit.
std::string Scatter(const std::vector<ValidatedMachine>& machines) {
  double least = 1e300, most = 1e-300;
  for (const ValidatedMachine& machine : machines) {
    for (const ValidationRow& row : machine.rows) {
      if (!IsDrawn(row) || Shown(row) <= 0) continue;
      least = std::min({least, row.emulated, Shown(row)});
      most = std::max({most, row.emulated, Shown(row)});
    }
  }
  if (least > most) return "";
  const double from = std::floor(std::log10(least)), to = std::ceil(std::log10(most) + 1e-9);
  constexpr double kLeft = 80, kTop = 40, kSide = 560;
  const auto place = [&](double value) { return (std::log10(value) - from) / (to - from) * kSide; };
  const auto at = [&](double x, double y) {
    return Point{kLeft + place(x), kTop + kSide - place(y)};
  };
  std::string svg = "<svg viewBox=\"0 0 720 660\" style=\"max-width:720px\">\n";
  svg += Legend(machines, {kLeft, 20});
  const double low = std::pow(10, from), high = std::pow(10, to);
  for (const double share : {1.15, 1.05}) {
    const Point a = at(low, low * share), b = at(high / share, high), c = at(high, high / share),
                d = at(low * share, low);
    svg += fmt::format(
        "<path d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}L{:.1f} {:.1f}L{:.1f} {:.1f}L{:.1f} {:.1f}L{:.1f} "
        "{:.1f}Z\" fill=\"{}\"/>\n",
        kLeft, a.y, b.x, kTop, kLeft + kSide, kTop, kLeft + kSide, c.y, d.x, kTop + kSide, kLeft,
        kTop + kSide, share > 1.1 ? "#eef3f8" : "#d5e2ee");
  }
  for (double e = from; e <= to; ++e) {
    const double value = std::pow(10, e);
    svg += LineBetween(at(value, low), at(value, high), kGrid) +
           LineBetween(at(low, value), at(high, value), kGrid) +
           TextAt({at(value, low).x, kTop + kSide + 18}, "middle", fmt::format("{:g}", value)) +
           TextAt({kLeft - 8, at(low, value).y + 4}, "end", fmt::format("{:g}", value));
  }
  svg +=
      LineBetween(at(low, low), at(high, low), kAxis) +
      LineBetween(at(low, low), at(low, high), kAxis) +
      LineBetween(at(low, low), at(high, high), "stroke=\"#888\" stroke-dasharray=\"5 4\"") +
      TextAt({kLeft + kSide / 2, kTop + kSide + 42}, "middle", "published, each in its unit", 13);
  svg += fmt::format(
      "<text transform=\"translate(22 {:.0f}) rotate(-90)\" text-anchor=\"middle\" "
      "font-size=\"13\" fill=\"#333\">emulated</text>\n",
      kTop + kSide / 2);
  for (std::size_t m = 0; m < machines.size(); ++m) {
    for (const ValidationRow& row : machines[m].rows) {
      if (IsDrawn(row) && Shown(row) > 0)
        svg += MarkAt(row, at(Shown(row), row.emulated), kColours[m % std::size(kColours)]);
    }
  }
  return svg + "</svg>\n";
}

// One mark per row, in the order of the tables; the error in percent.
std::string Errors(const std::vector<ValidatedMachine>& machines) {
  std::size_t drawn = 0;
  for (const ValidatedMachine& machine : machines) {
    drawn +=
        static_cast<std::size_t>(std::count_if(machine.rows.begin(), machine.rows.end(), IsDrawn));
  }
  if (drawn == 0) return "";
  constexpr double kLeft = 70, kTop = 40, kWidth = 1000, kHeight = 360, kGap = 26;
  const double step =
      (kWidth - kGap * static_cast<double>(machines.size())) / static_cast<double>(drawn);
  const auto height = [](double percent) {
    return kTop + kHeight / 2 - percent / kErrorShown * kHeight / 2;
  };
  std::string svg = "<svg viewBox=\"0 0 1100 450\">\n" + Legend(machines, {kLeft, 20});
  for (const auto& [percent, colour] : {std::pair(15.0, "#eef3f8"), std::pair(5.0, "#d5e2ee")}) {
    svg += fmt::format("<rect x=\"{}\" y=\"{:.1f}\" width=\"{}\" height=\"{:.1f}\" fill=\"{}\"/>\n",
                       kLeft, height(percent), kWidth, height(-percent) - height(percent), colour);
  }
  for (int percent = -60; percent <= 60; percent += 15) {
    svg += LineBetween({kLeft, height(percent)}, {kLeft + kWidth, height(percent)},
                       percent == 0 ? kAxis : kGrid) +
           TextAt({kLeft - 8, height(percent) + 4}, "end",
                  percent == 0 ? "0 %" : fmt::format("{:+d} %", percent));
  }
  double x = kLeft;
  for (std::size_t m = 0; m < machines.size(); ++m) {
    const double first = x += kGap / 2;
    for (const ValidationRow& row : machines[m].rows) {
      if (!IsDrawn(row)) continue;
      const double error = std::clamp(100 * RelativeError(row), -kErrorShown, kErrorShown);
      svg += MarkAt(row, {x + step / 2, height(error)}, kColours[m % std::size(kColours)]);
      x += step;
    }
    svg += TextAt({(first + x) / 2, kTop + kHeight + 24}, "middle", machines[m].name, 13);
    x += kGap / 2;
    if (m + 1 < machines.size())
      svg +=
          LineBetween({x, kTop}, {x, kTop + kHeight}, "stroke=\"#aaa\" stroke-dasharray=\"2 4\"");
  }
  return svg + "</svg>\n";
}

std::string Cells(const std::vector<std::string>& cells, std::size_t left, const char* tag) {
  std::string html = "<tr>";
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const bool is_left = i < left || i + 1 == cells.size();
    const char* style = cells[i] == "misses" ? " class=\"misses\"" : is_left ? " class=\"l\"" : "";
    html += fmt::format("<{0}{1}>{2}</{0}>", tag, style, Escape(cells[i]));
  }
  return html + "</tr>\n";
}

std::string Summaries(const std::vector<ErrorSummary>& summaries) {
  std::string html = "<table>\n" + Cells({"machine", "rows", "count", "judged", "hold", "median",
                                          "90th percentile", "worst", "worst row"},
                                         2, "th");
  for (const ErrorSummary& s : summaries) {
    const auto percent = [&s](double error, int of) {
      return s.judged == 0 || of == 0 ? "-" : fmt::format("{:.1f} %", 100 * error);
    };
    html += Cells({s.family, s.kind, std::to_string(s.rows), std::to_string(s.judged),
                   std::to_string(s.held), percent(s.median, s.figures),
                   percent(s.percentile_90, s.figures), percent(s.worst, s.judged), s.worst_id},
                  2, "td");
  }
  return html + "</table>\n";
}

}  // namespace

std::string ErrorText(const ValidationRow& row) {
  return row.published.has_bounds() ? fmt::format("{:+.1f} %", 100 * RelativeError(row)) : "-";
}

std::string JudgementText(const ValidationRow& row) {
  return !IsJudged(row) ? "-" : Holds(row) ? "holds" : "misses";
}

std::string ValidationPage(const std::vector<ValidatedMachine>& machines,
                           const std::vector<ErrorSummary>& summaries,
                           const std::vector<std::string>& notes) {
  std::string html = kHead + Summaries(summaries);
  for (const std::string& note : notes) html += "<p>" + Escape(note) + "</p>\n";
  html += "<h2>Error of each row, in percent of the published figure</h2>\n" + Errors(machines) +
          "<h2>Emulated against published</h2>\n" + Scatter(machines);
  for (const ValidatedMachine& machine : machines) {
    html += "<h2>" + Escape(machine.name) + "</h2>\n<table>\n" +
            Cells({"id", "published", "emulated", "unit", "error", "kind", "judged", "quantity"}, 1,
                  "th");
    for (const ValidationRow& row : machine.rows) {
      html += Cells({row.id, row.published.text.empty() ? "-" : row.published.text,
                     fmt::format("{:.6g}", row.emulated), row.unit, ErrorText(row),
                     RowKindName(row.kind), JudgementText(row), row.quantity},
                    1, "td");
    }
    html += "</table>\n";
  }
  return html + "</body></html>\n";
}

}  // namespace percs
