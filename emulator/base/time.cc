#include "emulator/base/time.h"

#include "fmt/format.h"

namespace percs {

std::string FormatTime(Time time, int decimals) {
  if (time >= kNever) return "never";
  if (time <= -kNever) return "-never";  // the lowest value has no negation
  if (time < 0) return "-" + FormatTime(-time, decimals);
  constexpr struct {
    Time picoseconds;
    int digits;
    const char* name;
  } kUnits[] = {
      {kSecond, 12, "s"}, {kMillisecond, 9, "ms"}, {kMicrosecond, 6, "us"}, {kNanosecond, 3, "ns"}};
  for (const auto& unit : kUnits) {
    if (time < unit.picoseconds) continue;
    Time step = 1;  // smallest time shown
    for (int d = decimals; d < unit.digits; ++d) step *= 10;
    time = (time + step / 2) / step * step;
    std::string text =
        fmt::format("{}.{:0{}}", time / unit.picoseconds, time % unit.picoseconds, unit.digits);
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
    return text + unit.name;
  }
  return fmt::format("{}ps", time);
}

}  // namespace percs
