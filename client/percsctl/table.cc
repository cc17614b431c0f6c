// Tables: one unit for each column, and room for them on the screen.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <string_view>

#include "absl/strings/numbers.h"
#include "client/percsctl/format.h"

namespace percs {
namespace {

using Row = std::vector<std::string>;
using CellLines = std::vector<std::string>;

constexpr std::size_t kGap = 2;  // between columns
constexpr std::string_view kVirtual = " virtual";
// Units from small to large, each 1,000 of the one before it.
using Family = std::span<const std::string_view>;
constexpr std::string_view kTimes[] = {"ps", "ns", "us", "ms", "s"};
constexpr std::string_view kRates[] = {" B/s", " kB/s", " MB/s", " GB/s", " TB/s"};
// These stay as they are: 2 KiB says more than 0.002 MiB.
constexpr std::string_view kOthers[] = {" %", " B", " KiB", " MiB", " GiB", " TiB"};

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

// Calls `visit` with every value of the column; false if it returned false, or there is none.
template <typename Rows, typename Visit>
bool AllCells(Rows& rows, std::size_t column, const Visit& visit) {
  bool any = false;
  for (std::size_t r = 1; r < rows.size(); ++r) {
    if (column >= rows[r].size() || Blank(rows[r][column])) continue;
    if (!visit(rows[r][column])) return false;
    any = true;
  }
  return any;
}

void Shorten(std::vector<Row>& rows, std::size_t column, std::size_t by) {
  AllCells(rows, column, [by](std::string& cell) {
    cell.resize(cell == kNoTime ? 1 : cell.size() - by);
    return true;
  });
}

// The number and unit of a cell of a family.
struct Number {
  double value = 0;
  std::size_t unit = 0;
};
std::optional<Number> NumberOf(const std::string& cell, const Family& family) {
  for (std::size_t unit = 0; unit < family.size(); ++unit) {
    if (!IsQuantity(cell, family[unit])) continue;
    std::string digits = cell.substr(0, cell.size() - family[unit].size());
    std::erase(digits, ',');
    Number number{0, unit};
    if (absl::SimpleAtod(digits, &number.value)) return number;
  }
  return std::nullopt;
}

bool IsOf(const std::vector<Row>& rows, std::size_t column, const Family& family) {
  return AllCells(rows, column,
                  [&](const auto& cell) { return NumberOf(cell, family).has_value(); });
}

double InUnit(const Number& number, std::size_t unit) {
  constexpr double kStep = 1000;
  return number.value *
         std::pow(kStep, static_cast<double>(number.unit) - static_cast<double>(unit));
}

// The least unit of these columns in which no number is long, if none vanishes in it.
std::optional<std::size_t> CommonUnit(const std::vector<Row>& rows,
                                      const std::vector<std::size_t>& columns,
                                      const Family& family) {
  constexpr double kLong = 1e5, kVanishes = 0.1;
  std::vector<Number> numbers;
  for (const std::size_t column : columns) {
    AllCells(rows, column, [&](const std::string& cell) {
      const auto number = NumberOf(cell, family);
      if (number->value != 0) numbers.push_back(*number);
      return true;
    });
  }
  const auto fits = [&](std::size_t unit) {
    return std::all_of(numbers.begin(), numbers.end(), [unit](const Number& number) {
      const double value = std::abs(InUnit(number, unit));
      return value < kLong && (value >= kVanishes || number.unit >= unit);
    });
  };
  const auto by_unit = [](const Number& a, const Number& b) { return a.unit < b.unit; };
  const auto [least, most] = std::minmax_element(numbers.begin(), numbers.end(), by_unit);
  for (std::size_t unit = numbers.empty() ? 1 : least->unit; !numbers.empty() && unit <= most->unit;
       ++unit) {
    if (fits(unit) || least->unit == most->unit) return unit;
  }
  return std::nullopt;
}

// `1,858.25`: at most three digits behind the point.
std::string NumberText(double value) {
  std::string text = fmt::format("{:.3f}", value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  constexpr std::size_t kGroup = 3;
  const std::size_t first = text[0] == '-' ? 1 : 0;
  for (std::size_t at = std::min(text.find('.'), text.size()); at > first + kGroup;)
    text.insert(at -= kGroup, 1, ',');
  return text;
}

// Writes all numbers of the columns in one unit; false if that would make one long or vanish.
bool WriteInOneUnit(std::vector<Row>& rows, const std::vector<std::size_t>& columns,
                    const Family& family) {
  const auto unit = CommonUnit(rows, columns, family);
  if (!unit) return false;
  for (const std::size_t column : columns) {
    AllCells(rows, column, [&](std::string& cell) {
      const Number number = *NumberOf(cell, family);
      if (number.unit == *unit) return true;
      cell = fmt::format("{}{}", NumberText(InUnit(number, *unit)), family[*unit]);
      return true;
    });
  }
  return true;
}

// All columns of a family in one unit, or else each in its own.
void UniteUnits(std::vector<Row>& rows, const Family& family) {
  std::vector<std::size_t> columns;
  for (std::size_t c = 0; c < rows[0].size(); ++c) {
    if (IsOf(rows, c, family)) columns.push_back(c);
  }
  if (WriteInOneUnit(rows, columns, family)) return;
  for (const std::size_t column : columns) WriteInOneUnit(rows, {column}, family);
}

// Moves what all cells of the column end with into its header.
void MoveUnit(std::vector<Row>& rows, std::size_t column) {
  for (const Family family : {Family(kTimes), Family(kRates), Family(kOthers)}) {
    for (const std::string_view unit : family) {
      if (!AllCells(rows, column, [&](const std::string& c) { return IsQuantity(c, unit); }))
        continue;
      Shorten(rows, column, unit.size());
      rows[0][column] += fmt::format(" {}", unit[0] == ' ' ? unit.substr(1) : unit);
      return;
    }
  }
}

// Takes "virtual" from the cells of every column that has nothing else; returns those columns.
std::vector<std::size_t> TakeVirtual(std::vector<Row>& rows) {
  std::vector<std::size_t> columns;
  for (std::size_t c = 0; c < rows[0].size(); ++c) {
    if (!AllCells(rows, c, [](const std::string& cell) { return cell.ends_with(kVirtual); }))
      continue;
    Shorten(rows, c, kVirtual.size());
    columns.push_back(c);
  }
  return columns;
}

// Writes it once: in the header of the one column, or for several in that of the first column.
void MarkVirtual(Row& header, const std::vector<std::size_t>& columns) {
  if (columns.empty()) return;
  std::string& where = header[columns.size() == 1 ? columns[0] : 0];
  if (where.find("virtual") == std::string::npos) where += " (virtual)";
}

Style StyleOf(const std::string& cell, bool header) {
  if (header) return Style::kHeader;
  if (cell.starts_with("DOWN") || cell == "failed") return Style::kBad;
  return cell == "saturated" || cell == "unstable" ? Style::kWarning : Style::kNone;
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
  const std::vector<std::size_t> is_virtual = TakeVirtual(rows);
  UniteUnits(rows, kTimes);
  UniteUnits(rows, kRates);
  for (std::size_t c = 0; c < rows[0].size(); ++c) MoveUnit(rows, c);
  MarkVirtual(rows[0], is_virtual);
  return Layout(std::move(rows), align_, static_cast<std::size_t>(indent), screen).Text();
}

}  // namespace percs
