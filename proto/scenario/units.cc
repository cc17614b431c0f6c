#include "proto/scenario/units.h"

#include <cctype>
#include <limits>
#include <vector>

#include "fmt/format.h"
#include "proto/scenario/suggest.h"

namespace percs {
namespace {

struct Unit {
  const char* name;
  std::int64_t scale;
};

struct Kind {
  const char* what;  // "is not a ..."
  const char* base;  // plural of the base unit
  const char* example;
  const char* bare_unit;    // what a bare number most likely meant; nullptr: the base unit
  std::vector<Unit> units;  // falling scale
};

const Kind& KindOf(Quantity quantity) {
  static const Kind kKinds[] = {
      {"a time",
       "picoseconds",
       "40us",
       "us",
       {{"s", 1'000'000'000'000},
        {"ms", 1'000'000'000},
        {"us", 1'000'000},
        {"ns", 1'000},
        {"ps", 1}}},
      {"an amount of data",
       "bytes",
       "64KiB",
       nullptr,
       {{"GiB", 1 << 30},
        {"GB", 1'000'000'000},
        {"MiB", 1 << 20},
        {"MB", 1'000'000},
        {"KiB", 1 << 10},
        {"kB", 1'000},
        {"B", 1}}},
      {"a rate",
       "bytes per second",
       "5GB/s",
       "GB/s",
       {{"TB/s", 1'000'000'000'000},
        {"GiB/s", 1 << 30},
        {"GB/s", 1'000'000'000},
        {"MiB/s", 1 << 20},
        {"MB/s", 1'000'000},
        {"KiB/s", 1 << 10},
        {"kB/s", 1'000},
        {"B/s", 1}}},
      {"a pace",
       "picoseconds per second",
       "1us/s",
       "us/s",
       {{"s/s", 1'000'000'000'000},
        {"ms/s", 1'000'000'000},
        {"us/s", 1'000'000},
        {"ns/s", 1'000},
        {"ps/s", 1}}},
  };
  return kKinds[static_cast<int>(quantity)];
}

struct Number {
  std::string whole, decimals;  // digits; decimals without trailing zeros
};

// Splits "1.5us" into a number and a unit name; false if it does not begin with a number.
bool Split(const std::string& text, Number* number, std::string* unit) {
  std::size_t i = 0;
  const auto digits = [&](std::string* into) {
    while (i < text.size() && std::isdigit(static_cast<unsigned char>(text[i]))) *into += text[i++];
    return !into->empty();
  };
  if (!digits(&number->whole)) return false;
  if (i < text.size() && text[i] == '.') {
    ++i;
    if (!digits(&number->decimals)) return false;
  }
  while (!number->decimals.empty() && number->decimals.back() == '0') number->decimals.pop_back();
  while (i < text.size() && text[i] == ' ') ++i;
  *unit = text.substr(i);
  return true;
}

enum class Exactness { kExact, kFraction, kTooLarge };

Exactness Scale(const Number& number, std::int64_t scale, std::int64_t* value) {
  constexpr __int128 kMax = std::numeric_limits<std::int64_t>::max();
  // 10^38 fits; beyond it no mantissa and scale of ours hold enough twos and fives to be whole.
  constexpr std::size_t kDecimalsMax = 38;
  __int128 mantissa = 0, divisor = 1;
  for (char c : number.whole + number.decimals) {
    mantissa = mantissa * 10 + (c - '0');
    if (mantissa > kMax) return Exactness::kTooLarge;
  }
  if (number.decimals.size() > kDecimalsMax) return Exactness::kFraction;
  for (std::size_t i = 0; i < number.decimals.size(); ++i) divisor *= 10;
  const __int128 scaled = mantissa * scale;
  if (scaled % divisor != 0) return Exactness::kFraction;
  if (scaled / divisor > kMax) return Exactness::kTooLarge;
  *value = static_cast<std::int64_t>(scaled / divisor);
  return Exactness::kExact;
}

absl::Status NoUnit(Quantity quantity, const std::string& text, const Number& number) {
  const Kind& kind = KindOf(quantity);
  std::int64_t value = 0;
  std::string example = kind.example;
  if (kind.bare_unit != nullptr) {
    example = text + kind.bare_unit;
  } else if (Scale(number, 1, &value) == Exactness::kExact) {
    example = PrintQuantity(quantity, value);
  }
  return absl::InvalidArgumentError(fmt::format("{} needs a unit, for example {}", text, example));
}

absl::Status UnknownUnit(const Kind& kind, const std::string& text, const std::string& unit) {
  std::vector<std::string> names;
  for (auto it = kind.units.rbegin(); it != kind.units.rend(); ++it) names.push_back(it->name);
  return absl::InvalidArgumentError(fmt::format("\"{}\" has the unknown unit \"{}\"{}", text, unit,
                                                Suggest(unit, names, "units")));
}

std::string WithDecimals(std::int64_t value, std::int64_t scale) {
  const std::int64_t whole = value / scale;
  const auto thousandths =
      static_cast<std::int64_t>(static_cast<__int128>(value % scale) * 1000 / scale);
  std::string text = fmt::format("{}.{:03}", whole, thousandths);
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text;
}

}  // namespace

absl::StatusOr<std::int64_t> ParseQuantity(Quantity quantity, const std::string& text) {
  const Kind& kind = KindOf(quantity);
  Number number;
  std::string unit;
  if (!text.empty() && text[0] == '-' && text.size() > 1 &&
      std::isdigit(static_cast<unsigned char>(text[1]))) {
    return absl::InvalidArgumentError(fmt::format(
        "\"{}\" is negative; write {} from 0 up, for example {}", text, kind.what, kind.example));
  }
  if (!Split(text, &number, &unit)) {
    return absl::InvalidArgumentError(
        fmt::format("\"{}\" is not {}; write a number and a unit, for example {}", text, kind.what,
                    kind.example));
  }
  if (unit.empty()) return NoUnit(quantity, text, number);
  for (const Unit& known : kind.units) {
    if (unit != known.name) continue;
    std::int64_t value = 0;
    switch (Scale(number, known.scale, &value)) {
      case Exactness::kExact:
        return value;
      case Exactness::kFraction:
        return absl::InvalidArgumentError(
            fmt::format("\"{}\" is not a whole number of {}", text, kind.base));
      case Exactness::kTooLarge:
        return absl::InvalidArgumentError(
            fmt::format("\"{}\" is too large; the most is {}", text,
                        PrintQuantity(quantity, std::numeric_limits<std::int64_t>::max())));
    }
  }
  return UnknownUnit(kind, text, unit);
}

std::string PrintQuantity(Quantity quantity, std::int64_t value) {
  const Kind& kind = KindOf(quantity);
  std::string best = fmt::format("{}{}", value, kind.units.back().name);
  for (auto it = kind.units.rbegin(); it != kind.units.rend(); ++it) {
    const bool binary = (it->scale & (it->scale - 1)) == 0;
    // Binary units only as whole numbers: 1.5KiB reads worse than 1536B.
    const __int128 parts = static_cast<__int128>(value) * (binary ? 1 : 1000);
    if (value < it->scale || parts % it->scale != 0) continue;
    std::string text = WithDecimals(value, it->scale) + it->name;
    if (text.size() <= best.size()) best = std::move(text);
  }
  return best;
}

std::string QuantityPattern(Quantity quantity) {
  std::string names;
  for (const Unit& unit : KindOf(quantity).units) {
    names += (names.empty() ? "" : "|") + std::string(unit.name);
  }
  const std::string number = fmt::format("^[0-9]+(\\.[0-9]+)? *({})$", names);
  return quantity == Quantity::kPace ? fmt::format("{}|^max$", number) : number;
}

}  // namespace percs
