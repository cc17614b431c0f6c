#include "client/percsctl/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "client/lib/scenario_file.h"
#include "client/percsctl/format.h"

namespace percs {
namespace {

constexpr auto kInterval = std::chrono::milliseconds(200);
constexpr double kLeastShareForEta = 0.01;

}  // namespace

ProgressLine::ProgressLine(const Scenario& scenario)
    : expected_end_(ExpectedEnd(scenario)),
      expected_packets_(ExpectedPackets(scenario)),
      terminal_(isatty(STDERR_FILENO) != 0) {}

void ProgressLine::Clear() {
  if (shown_) std::fputs("\r\033[K", stderr);
  shown_ = false;
}

double ProgressLine::wall_seconds() const {
  return std::chrono::duration<double>(Clock::now() - start_).count();
}

void ProgressLine::Show(Time now, std::uint64_t packets_delivered) {
  if (!terminal_ || Clock::now() < next_) return;
  next_ = Clock::now() + kInterval;
  shown_ = true;
  fmt::print(stderr, "\r{}\033[K",
             Text(now, packets_delivered, wall_seconds(), expected_end_, expected_packets_));
  std::fflush(stderr);
}

std::string ProgressLine::Text(Time now, std::uint64_t packets, double wall_seconds,
                               Time expected_end, std::uint64_t expected_packets) {
  double share = 0;
  if (expected_packets > 0)
    share = static_cast<double>(packets) / static_cast<double>(expected_packets);
  if (expected_end > 0) {
    share = std::max(share, static_cast<double>(now) / static_cast<double>(expected_end));
  }
  std::string text = fmt::format("{}, wall {}, {} packets", FormatVirtual(now),
                                 FormatWall(wall_seconds), FormatCount(packets));
  if (share < kLeastShareForEta) return text + ", ETA unknown";
  share = std::min(share, 1.0);
  return text + fmt::format(", {:.0f} %, ETA {}", share * 100,
                            FormatWall(wall_seconds * (1 - share) / share));
}

}  // namespace percs
