// Tables: one unit for each column, and room for them on the screen.
#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "client/percsctl/format.h"

namespace percs {
namespace {

using Row = std::vector<std::string>;
using CellLines = std::vector<std::string>;

constexpr std::size_t kGap = 2;  // between columns
constexpr std::string_view kVirtual = " virtual";
constexpr std::string_view kUnits[] = {" %",    "ps",    "ns",    "us",   "ms",   "s",
                                       " B",    " KiB",  " MiB",  " GiB", " TiB", " B/s",
                                       " kB/s", " MB/s", " GB/s", " TB/s"};

// Not a value: there was nothing to measure.
bool Blank(const std::string& cell) { return cell.empty() || cell == "-"; }

constexpr std::string_view kNoTime = "0ps";  // in any unit
// A number with nothing behind it but the unit.
bool IsQuantity(std::string_view cell, std::string_view unit) {
  if (cell == kNoTime && unit.ends_with("s") && unit[0] != ' ') return true;
  if (cell.size() <= unit.size() || !cell.ends_with(unit)) return false;
  cell.remove_suffix(unit.size());
  return cell.find_first_not_of("-+0123456789.,e") == std::string_view::npos;
}

template <typename Has>
bool AllCells(const std::vector<Row>& rows, std::size_t column, const Has& has) {
  bool any = false;
  for (std::size_t r = 1; r < rows.size(); ++r) {
    if (column >= rows[r].size() || Blank(rows[r][column])) continue;
    if (!has(rows[r][column])) return false;
    any = true;
  }
  return any;
}

void Shorten(std::vector<Row>& rows, std::size_t column, std::size_t by) {
  for (std::size_t r = 1; r < rows.size(); ++r) {
    if (column >= rows[r].size() || Blank(rows[r][column])) continue;
    std::string& cell = rows[r][column];
    cell.resize(cell == kNoTime ? 1 : cell.size() - by);
  }
}

// Moves what all cells of the column end with into its header.
void MoveUnit(std::vector<Row>& rows, std::size_t column) {
  std::string& header = rows[0][column];
  const bool is_virtual =
      AllCells(rows, column, [](const std::string& cell) { return cell.ends_with(kVirtual); });
  if (is_virtual) Shorten(rows, column, kVirtual.size());
  for (const std::string_view unit : kUnits) {
    if (!AllCells(rows, column, [&](const std::string& c) { return IsQuantity(c, unit); }))
      continue;
    Shorten(rows, column, unit.size());
    header += fmt::format(" {}", unit[0] == ' ' ? unit.substr(1) : unit);
    break;
  }
  if (is_virtual && header.find("virtual") == std::string::npos) header += " (virtual)";
}

Style StyleOf(const std::string& cell, bool header) {
  if (header) return Style::kHeader;
  if (cell.starts_with("DOWN") || cell == "failed") return Style::kBad;
  return cell == "saturated" ? Style::kWarning : Style::kNone;
}

std::size_t LongestWord(const std::string& text) {
  std::size_t longest = 0;
  for (const std::string& word : WrapWords(text, 1)) longest = std::max(longest, word.size());
  return longest;
}

class Layout {
 public:
  Layout(std::vector<Row> rows, const std::string& align, std::size_t indent, const Screen& screen)
      : rows_(std::move(rows)), align_(align), indent_(indent), screen_(screen) {
    for (const Row& row : rows_) widths_.resize(std::max(widths_.size(), row.size()), 0);
    for (std::size_t c = 0; c < widths_.size(); ++c) widths_[c] = std::max(Widest(c), Header(c));
    if (TooWide()) {
      for (std::size_t c = 0; c < widths_.size(); ++c)
        widths_[c] = std::max(Widest(c), LongestWord(Cell(rows_[0], c)));
    }
    while (TooWide() && NarrowOne()) {
    }
  }

  std::string Text() const {
    std::string text;
    for (std::size_t first = 1; first == 1 || first < widths_.size();) {
      std::size_t last = first, width = indent_ + widths_[0];
      while (last < widths_.size() && (last == first || screen_.width == 0 ||
                                       width + kGap + widths_[last] <= screen_.width)) {
        width += kGap + widths_[last++];
      }
      if (!text.empty()) text += "\n";
      for (const Row& row : rows_) text += RowText(row, first, last);
      first = std::max(last, first + 1);
    }
    return text;
  }

 private:
  static std::string Cell(const Row& row, std::size_t column) {
    return column < row.size() ? row[column] : std::string();
  }
  bool Right(std::size_t column) const {
    return align_[std::min(column, align_.size() - 1)] == 'r';
  }
  std::size_t Header(std::size_t column) const { return Cell(rows_[0], column).size(); }
  std::size_t Widest(std::size_t column) const {
    std::size_t widest = 0;
    for (std::size_t r = 1; r < rows_.size(); ++r)
      widest = std::max(widest, Cell(rows_[r], column).size());
    return widest;
  }
  std::size_t Total() const {
    std::size_t total = indent_ + kGap * (widths_.size() - 1);
    for (const std::size_t width : widths_) total += width;
    return total;
  }
  bool TooWide() const { return screen_.width > 0 && Total() > screen_.width; }

  // Takes columns away from the widest text, as far as its words allow; false if none allows it.
  bool NarrowOne() {
    std::size_t best = widths_.size(), least = 0;
    for (std::size_t c = 0; c < widths_.size(); ++c) {
      if (Right(c) || (best < widths_.size() && widths_[c] <= widths_[best])) continue;
      std::size_t word = 0;
      for (const Row& row : rows_) word = std::max(word, LongestWord(Cell(row, c)));
      if (word < widths_[c]) best = c, least = word;
    }
    if (best == widths_.size()) return false;
    const std::size_t excess = Total() - screen_.width;
    widths_[best] = std::max(least, widths_[best] - std::min(widths_[best], excess));
    return true;
  }

  // One row of the columns [first, last), behind that of the first column.
  std::string RowText(const Row& row, std::size_t first, std::size_t last) const {
    const bool header = &row == &rows_[0];
    std::vector<std::size_t> columns{0};
    for (std::size_t c = first; c < std::min(last, row.size()); ++c) columns.push_back(c);
    std::vector<CellLines> cells;
    std::size_t height = 1;
    for (const std::size_t c : columns) {
      cells.push_back(WrapWords(Cell(row, c), widths_[c]));
      height = std::max(height, cells.back().size());
    }
    std::string text;
    for (std::size_t line = 0; line < height; ++line) {
      std::string one(indent_, ' '), gap;
      for (std::size_t i = 0; i < columns.size(); ++i) {
        const std::size_t c = columns[i];
        const std::string cell = line < cells[i].size() ? cells[i][line] : "";
        const std::string fill(widths_[c] - std::min(widths_[c], cell.size()), ' ');
        const std::string shown =
            cell.empty() ? cell : Styled(cell, StyleOf(Cell(row, c), header), screen_);
        one += gap + (Right(c) ? fill + shown : shown + fill);
        gap = std::string(kGap, ' ');
      }
      one.erase(one.find_last_not_of(' ') + 1);
      text += one + "\n";
    }
    return text;
  }

  const std::vector<Row> rows_;
  const std::string& align_;
  const std::size_t indent_;
  const Screen& screen_;
  std::vector<std::size_t> widths_;
};

}  // namespace

std::string Table::ToString(int indent, const Screen& screen) const {
  std::vector<Row> rows = rows_;
  for (std::size_t c = 0; c < rows[0].size(); ++c) MoveUnit(rows, c);
  return Layout(std::move(rows), align_, static_cast<std::size_t>(indent), screen).Text();
}

}  // namespace percs
