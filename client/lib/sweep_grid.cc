#include "client/lib/sweep_grid.h"

#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <cstring>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "emulator/base/digest.h"
#include "emulator/base/version.h"

namespace percs {
namespace {

// A decimal number, exactly: digits / 10^decimals, and the unit behind it.
struct Decimal {
  std::int64_t digits = 0;
  int decimals = 0;
  std::string unit;
};

absl::Status RefuseAxis(const std::string& text, const std::string& why) {
  return absl::InvalidArgumentError(fmt::format("--over {}: {}", text, why));
}

bool ParseDecimal(const std::string& text, Decimal& number) {
  const std::size_t end = std::min(text.find_first_not_of("0123456789.-"), text.size());
  std::string digits = text.substr(0, end);
  number.unit = text.substr(end);
  const std::size_t point = digits.find('.');
  number.decimals = point == std::string::npos ? 0 : static_cast<int>(digits.size() - point - 1);
  if (point != std::string::npos) digits.erase(point, 1);
  // Scaled() has room for nine digits on both sides of the point.
  const auto whole = static_cast<int>(digits.size()) - number.decimals;
  return number.decimals <= 9 && whole <= 9 && absl::SimpleAtoi(digits, &number.digits);
}

// With as many decimals as `decimals` says.
std::int64_t Scaled(const Decimal& number, int decimals) {
  std::int64_t digits = number.digits;
  for (int i = number.decimals; i < decimals; ++i) digits *= 10;
  return digits;
}

std::string Print(std::int64_t digits, int decimals, const std::string& unit) {
  std::string text = fmt::format("{:0{}}", std::abs(digits), decimals + 1);
  if (decimals > 0) {
    text.insert(text.size() - static_cast<std::size_t>(decimals), ".");
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
  }
  return (digits < 0 ? "-" : "") + text + unit;
}

// `first..last:step`; appends its values.
absl::Status AddRange(const std::string& whole, const std::string& text,
                      std::vector<std::string>& values) {
  const std::size_t dots = text.find(".."), colon = text.find(':', dots);
  Decimal first, last, step{1, 0, ""};
  const std::size_t end = std::min(colon, text.size());
  bool good = ParseDecimal(text.substr(0, dots), first) &&
              ParseDecimal(text.substr(dots + 2, end - dots - 2), last);
  if (colon != std::string::npos) {
    good = good && ParseDecimal(text.substr(colon + 1), step);
  } else {
    step.unit = first.unit;
    good = good && first.decimals == 0 && last.decimals == 0;
  }
  if (!good || first.unit != last.unit || first.unit != step.unit) {
    return RefuseAxis(whole,
                      fmt::format("\"{}\" is not a range; write first..last:step with the same "
                                  "unit everywhere, like 0.1..0.9:0.1 or 1us..5us:2us",
                                  text));
  }
  const int decimals = std::max({first.decimals, last.decimals, step.decimals});
  const std::int64_t from = Scaled(first, decimals), to = Scaled(last, decimals),
                     by = Scaled(step, decimals);
  if (by <= 0 || to < from) {
    return RefuseAxis(whole, fmt::format("the range \"{}\" has to go up, by a step above 0", text));
  }
  if (static_cast<std::uint64_t>((to - from) / by) >= kSweepPointsMax) {
    return RefuseAxis(
        whole, fmt::format("the range \"{}\" has more than {} values", text, kSweepPointsMax));
  }
  for (std::int64_t value = from; value <= to; value += by)
    values.push_back(Print(value, decimals, first.unit));
  return absl::OkStatus();
}

// A path or file name may have dots, too: a range begins with a digit or a sign.
bool IsRange(const std::string& text) {
  return text.find("..") != std::string::npos && std::strchr("-0123456789", text[0]) != nullptr;
}

}  // namespace

absl::StatusOr<SweepAxis> ParseSweepAxis(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
    return RefuseAxis(text,
                      "write KEY=VALUES, like workload.pattern.load=0.1..0.9:0.1 or "
                      "routing.mode=hw_direct,hw_indirect");
  }
  SweepAxis axis{text.substr(0, equals), {}};
  for (const std::string& value :
       std::vector<std::string>(absl::StrSplit(text.substr(equals + 1), ','))) {
    if (value.empty()) return RefuseAxis(text, "one of its values is empty");
    if (!IsRange(value)) {
      axis.values.push_back(value);
    } else if (absl::Status status = AddRange(text, value, axis.values); !status.ok()) {
      return status;
    }
  }
  return axis;
}

absl::StatusOr<std::vector<SweepPoint>> SweepPoints(const std::vector<SweepAxis>& axes,
                                                    std::uint64_t repeat) {
  std::vector<SweepPoint> points(1);
  for (std::size_t a = 0; a < axes.size(); ++a) {
    const SweepAxis& axis = axes[a];
    for (std::size_t b = 0; b < a; ++b) {
      if (axes[b].key == axis.key) {
        return absl::InvalidArgumentError(
            fmt::format("--over {}: given twice; write all its values in one list", axis.key));
      }
    }
    if (points.size() * axis.values.size() * repeat > kSweepPointsMax) {
      return absl::InvalidArgumentError(
          fmt::format("the grid has more than {} points", kSweepPointsMax));
    }
    std::vector<SweepPoint> more;
    for (const SweepPoint& point : points) {
      for (const std::string& value : axis.values) {
        SweepPoint& one = more.emplace_back(point);
        one.values.push_back(value);
        one.over.push_back(axis.key + "=" + value);
      }
    }
    points = std::move(more);
  }
  std::vector<SweepPoint> all;
  for (const SweepPoint& point : points) {
    for (std::uint64_t r = 0; r < repeat; ++r) all.emplace_back(point).repeat = r;
  }
  return all;
}

std::string SweepKey(const v1::Scenario& scenario) {
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    scenario.SerializeToCodedStream(&coded);
  }
  DigestStream digest;
  digest.Add(kModelVersion);
  digest.Add(bytes.size());
  for (std::size_t i = 0; i < bytes.size(); i += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + i, std::min(sizeof(word), bytes.size() - i));
    digest.Add(word);
  }
  return digest.Finish().ToString();
}

}  // namespace percs
