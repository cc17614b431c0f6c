#include "daemon/page/switch_spots.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstddef>
#include <map>
#include <numbers>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace percs {
namespace {

// "l2-s5" is {{"l", 2}, {"s", 5}}; nullopt: a part is no word with a number behind it.
struct Part {
  std::string word;
  int number = 0;
};
std::optional<std::vector<Part>> PartsOf(const std::string& name) {
  std::vector<Part> parts;
  for (const std::string& text : std::vector<std::string>(absl::StrSplit(name, '-'))) {
    const auto digit = std::find_if(text.begin(), text.end(),
                                    [](unsigned char c) { return std::isdigit(c) != 0; });
    const auto word = static_cast<std::size_t>(digit - text.begin());
    Part& part = parts.emplace_back(Part{text.substr(0, word), 0});
    if (!absl::SimpleAtoi(text.substr(word), &part.number)) return std::nullopt;
  }
  return parts;
}

bool IsOfAnotherMachine(const std::vector<Part>& parts) {
  const std::string& first = parts.front().word;
  if (parts.size() == 1) return first == "blade" || first == "triblade";
  const std::string& second = parts[1].word;
  if (parts.size() == 3) return first == "sn" && second == "d" && parts[2].word == "h";
  return parts.size() == 2 &&
         ((first == "cu" && (second == "leaf" || second == "spine")) ||
          (first == "sw" && (second == "a" || second == "b" || second == "c")));
}

using Coordinates = std::vector<std::vector<int>>;  // by switch, all of one length

// Of grids without gaps; else empty.
std::vector<int> SizesOf(const Coordinates& switches) {
  std::vector<int> sizes(switches.front().size());
  for (const std::vector<int>& at : switches) {
    for (std::size_t d = 0; d < sizes.size(); ++d) sizes[d] = std::max(sizes[d], at[d] + 1);
  }
  double all = 1;
  for (const int size : sizes) all *= size;
  return all == static_cast<double>(switches.size()) ? sizes : std::vector<int>();
}

std::vector<Spot> InGrids(const Coordinates& switches, const std::vector<int>& size) {
  const std::size_t dims = size.size();
  std::vector<Spot> spots(switches.size());
  double wide = size[dims - 1], high = size[dims - 2];
  for (std::size_t i = 0; i < switches.size(); ++i) {
    spots[i] = {static_cast<double>(switches[i][dims - 1]),
                static_cast<double>(switches[i][dims - 2])};
  }
  for (std::size_t d = dims - 2; d-- > 0;) {  // grids in a grid
    const int columns = static_cast<int>(std::ceil(std::sqrt(size[d])));
    for (std::size_t i = 0; i < switches.size(); ++i) {
      spots[i].x += (switches[i][d] % columns) * (wide + 1);
      spots[i].y += (switches[i][d] / columns) * (high + 1);  // NOLINT(bugprone-integer-division)
    }
    wide += (columns - 1) * (wide + 1);
    high += std::ceil(static_cast<double>(size[d]) / columns - 1) * (high + 1);
  }
  return spots;
}

// Of {level, number}.
std::vector<Spot> InLevels(const Coordinates& switches) {
  std::map<int, int> count;  // by level
  for (const std::vector<int>& at : switches) count[at[0]] = std::max(count[at[0]], at[1] + 1);
  int most = 1;
  for (const auto& [level, of] : count) most = std::max(most, of);
  constexpr double kHighOfWide = 0.5;
  const int top = count.rbegin()->first;
  const double step = std::max(2.0, kHighOfWide * most / static_cast<double>(count.size()));
  std::vector<Spot> spots;
  for (const std::vector<int>& at : switches) {
    const double share = (at[1] + 0.5) / count[at[0]];
    spots.push_back({share * most - 0.5, (top - at[0]) * step});
  }
  return spots;
}

std::vector<Spot> InCircle(std::size_t switches) {
  const double radius = std::max(1.0, static_cast<double>(switches) / (2 * std::numbers::pi));
  std::vector<Spot> spots;
  for (std::size_t i = 0; i < switches; ++i) {
    const double angle =
        2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(switches);
    spots.push_back({radius * (1 + std::sin(angle)), radius * (1 - std::cos(angle))});
  }
  return spots;
}

}  // namespace

std::vector<Spot> SpotsOfSwitches(const std::vector<std::string>& names) {
  Coordinates coordinates;
  bool other = true, grid = true, tree = true;
  for (const std::string& name : names) {
    const auto parts = PartsOf(name);
    other &= parts && IsOfAnotherMachine(*parts);
    std::vector<int>& at = coordinates.emplace_back();
    grid &= parts && parts->size() > 1 && parts->front().word == "s";
    tree &= parts && parts->size() == 2 && (*parts)[0].word == "l" && (*parts)[1].word == "s";
    for (std::size_t i = 0; parts && i < parts->size(); ++i) {
      const Part& part = (*parts)[i];
      at.push_back(part.number);
      grid &= i == 0 || part.word.empty();
      const bool fits = static_cast<std::size_t>(part.number) <= names.size();
      grid &= fits;
      tree &= fits;
    }
    grid &= at.size() == coordinates.front().size();
  }
  if (other) return {};
  if (tree) return InLevels(coordinates);
  if (!grid) return InCircle(names.size());
  const std::vector<int> sizes = SizesOf(coordinates);
  return sizes.empty() ? InCircle(names.size()) : InGrids(coordinates, sizes);
}

}  // namespace percs
