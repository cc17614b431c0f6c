#include "emulator/clock/clock_report.h"

#include <algorithm>

namespace percs {
namespace {

// Two clocks set by the same source differ by the errors of their symbols (one error per link and a
// picosecond of rounding), and by the drift of their oscillators from the source's since then.
Time Bound(const ClockSettings& settings, std::uint32_t depth, Time age) {
  const Time taken_over = 2 * static_cast<Time>(depth) * (settings.error + 1);
  const auto drifted =
      static_cast<Time>(static_cast<__int128>(4) * settings.drift_ppb * age / 1'000'000'000);
  return taken_over + drifted + 4;
}

// Extremes of the offsets of some hubs.
struct Spread {
  Time low = kNever, high = -kNever;
  void Add(Time offset) {
    low = std::min(low, offset);
    high = std::max(high, offset);
  }
  Time width() const { return high > low ? high - low : 0; }
};

}  // namespace

ClockReport ReportClocks(const ClockSettings& settings, Time delay_max, Time end,
                         const std::vector<const std::vector<ClockSample>*>& samples) {
  ClockReport report;
  report.on = true;
  report.settings = settings;
  report.hubs = samples.size();
  for (const auto* hub : samples) {
    for (const ClockSample& s : *hub) report.depth_max = std::max(report.depth_max, s.depth);
  }
  const Time steady_age = settings.period + settings.period / 1000 + report.depth_max * delay_max;
  report.bound = Bound(settings, report.depth_max, steady_age);
  double sum = 0;
  for (std::size_t n = 0; static_cast<Time>(n + 1) * settings.period <= end; ++n) {
    Spread synchronised, all;
    NodeId source = kNoNode;
    bool one_source = true;
    report.synchronised = 0;
    for (const auto* hub : samples) {
      if (n >= hub->size()) return report;
      const ClockSample& s = (*hub)[n];
      if (s.age == kNever) continue;
      all.Add(s.offset);
      if (s.age == kDrifting) continue;
      report.age_max = std::max(report.age_max, s.age);
      if (s.age > steady_age) continue;
      one_source = one_source && (source == kNoNode || source == s.source);
      source = s.source;
      synchronised.Add(s.offset);
      ++report.synchronised;
    }
    ++report.samples;
    report.skew_max_ever = std::max(report.skew_max_ever, all.width());
    if (source == kNoNode || !one_source) continue;
    if (report.sources.empty() || report.sources.back() != source) report.sources.push_back(source);
    ++report.steady;
    report.skew_max = std::max(report.skew_max, synchronised.width());
    sum += static_cast<double>(synchronised.width());
    report.skew_mean_ps = sum / static_cast<double>(report.steady);
  }
  return report;
}

}  // namespace percs
