// One published figure beside what the emulator gives for it; the same form for every machine.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace percs {

// What the figure has to do with the emulator's parameters; it decides how the row is judged.
enum class RowKind : std::uint8_t {
  kCalibrated,   // parameters were set on this figure: within 5 %
  kPredicted,    // nothing was: within 15 %
  kRestated,     // a constant of the machine or arithmetic on other rows: shown, never judged
  kUnexplained,  // docs/fidelity.md says which facts are missing: shown, never judged
};
inline constexpr int kRowKinds = 4;
const char* RowKindName(RowKind kind);

// What is published: one figure, a range, or a bound, which is a range with one open end. Nothing
// at all if both ends are open; `text` may still hold what the source says in words.
struct PublishedFigure {
  std::string text;  // empty: not known here
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();

  static PublishedFigure None() { return {}; }
  static PublishedFigure At(double value);
  static PublishedFigure Between(double low, double high);
  static PublishedFigure AtLeast(double value);
  static PublishedFigure AtMost(double value);
  static PublishedFigure Words(std::string text);

  bool is_one_value() const { return low == high; }
  bool has_bounds() const {
    return low > -std::numeric_limits<double>::infinity() ||
           high < std::numeric_limits<double>::infinity();
  }
};

struct ValidationRow {
  std::string id;
  std::string quantity;
  PublishedFigure published;
  double emulated = 0;
  std::string unit;
  RowKind kind = RowKind::kPredicted;
  std::vector<std::string> other_ids;  // numbers of the same figure in other lists
};

}  // namespace percs
