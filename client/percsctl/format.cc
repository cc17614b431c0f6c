#include "client/percsctl/format.h"

#include <fmt/format.h>

#include <cmath>

namespace percs {
namespace {

// `value` with up to `decimals` decimals and no trailing zeros.
std::string Trimmed(double value, int decimals) {
  std::string text = fmt::format("{:.{}f}", value, decimals);
  if (text.find('.') == std::string::npos) return text;
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

}  // namespace

std::string FormatVirtual(Time time) { return FormatShort(time) + " virtual"; }

std::string FormatLongWait(Time wait, Time pace) {
  constexpr double kLongSeconds = 60;
  if (pace <= 0) return "";
  const double seconds = static_cast<double>(wait) / static_cast<double>(pace);
  if (seconds <= kLongSeconds) return "";
  return fmt::format(" (= {} at {}/s)", FormatWall(seconds), FormatShort(pace));
}

std::string FormatWall(double seconds) {
  if (!(seconds >= 0)) return "unknown";
  if (seconds < 0.001) return fmt::format("{:.0f} us", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.0f} ms", seconds * 1e3);
  if (seconds < 120) return fmt::format("{:.2f} s", seconds);
  const auto whole = static_cast<std::uint64_t>(std::llround(seconds));
  if (whole < 7200) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole % 3600 / 60);
}

std::string FormatBytes(std::uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  int unit = 0;
  double value = static_cast<double>(bytes);
  while (value >= 1024 && unit < 4) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{} {}", Trimmed(value, 2), kUnits[unit]);
}

std::string FormatCount(std::uint64_t n) {
  std::string text = fmt::format("{}", n);
  for (int i = static_cast<int>(text.size()) - 3; i > 0; i -= 3) text.insert(i, 1, ',');
  return text;
}

std::string FormatPercent(double fraction) { return fmt::format("{:.1f} %", fraction * 100); }

std::string FormatRate(double bytes_per_second) {
  constexpr const char* kUnits[] = {"B/s", "kB/s", "MB/s", "GB/s", "TB/s"};
  int unit = 0;
  while (bytes_per_second >= 1000 && unit < 4) {
    bytes_per_second /= 1000;
    ++unit;
  }
  return fmt::format("{} {}", Trimmed(bytes_per_second, 2), kUnits[unit]);
}

std::string Counted(std::uint64_t n, const char* noun) {
  return fmt::format("{} {}{}", FormatCount(n), noun, n == 1 ? "" : "s");
}

std::string FormatNodes(std::uint64_t nodes, std::uint64_t blades, std::uint64_t crossbars) {
  std::string text = Counted(nodes - blades - crossbars, "hub");
  if (crossbars > 0) {
    text += blades > 0 ? ", " + Counted(blades, "blade") : "";
    return text + " and " + Counted(crossbars, "crossbar");
  }
  if (blades > 0) text += " and " + Counted(blades, "blade");
  return text;
}

}  // namespace percs
