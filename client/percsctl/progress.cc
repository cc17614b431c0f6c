#include "client/percsctl/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <numeric>

#include "client/lib/scenario_file.h"
#include "client/percsctl/format.h"

namespace percs {
namespace {

constexpr auto kInterval = std::chrono::milliseconds(200);
constexpr auto kLineInterval = std::chrono::seconds(2);
constexpr double kLeastShareForEta = 0.01;
// Between two looks at a run: a look reads one counter of each node.
constexpr std::uint64_t kNodeWindows = 8'192;
constexpr std::uint64_t kWindowsMax = 16;

}  // namespace

void AddProgressOption(CLI::App& app, bool& always) {
  app.add_flag("--progress", always,
               "Show progress and an estimate even if standard error is not a terminal");
}

ProgressLine::ProgressLine(bool always)
    : terminal_(isatty(STDERR_FILENO) != 0), shows_(terminal_ || always) {}

void ProgressLine::Clear() {
  if (shown_ && terminal_) std::fputs("\r\033[K", stderr);
  shown_ = false;
}

double ProgressLine::wall_seconds() const {
  return std::chrono::duration<double>(Clock::now() - start_).count();
}

void ProgressLine::Write(const std::string& text) {
  if (!shows_) return;
  shown_ = true;
  if (terminal_) {
    next_ = Clock::now() + kInterval;
    fmt::print(stderr, "\r{}\033[K", text);
  } else {
    next_ = Clock::now() + kLineInterval;
    fmt::print(stderr, "{}\n", text);
  }
  std::fflush(stderr);
}

void ProgressLine::Show(const std::string& what, double share) {
  if (!Due()) return;
  Write(Text(what, first_, {wall_seconds(), share}));
}

void ProgressLine::StartEstimate(double share) { first_ = {wall_seconds(), share}; }

std::string ProgressLine::Text(const std::string& what, Point first, Point now) {
  const double share = std::min(now.share, 1.0), done = share - first.share;
  const std::string text = fmt::format("{}, wall {}", what, FormatWall(now.wall_seconds));
  if (done < kLeastShareForEta) return text + ", ETA unknown";
  const double left = (now.wall_seconds - first.wall_seconds) * (1 - share) / done;
  return text + fmt::format(", {:.0f} %, ETA {}", share * 100, FormatWall(left));
}

RunProgressLine::RunProgressLine(const Scenario& scenario, bool always)
    : expected_end_(ExpectedEnd(scenario)),
      expected_packets_(ExpectedPackets(scenario)),
      line_(always) {}

void RunProgressLine::Show(Time now, std::uint64_t packets_delivered) {
  if (!line_.Due()) return;
  line_.Show(fmt::format("{}, {}", FormatVirtual(now), Counted(packets_delivered, "packet")),
             Share(now, packets_delivered, expected_end_, expected_packets_));
}

void RunProgressLine::StartEstimate(Time now, std::uint64_t packets_delivered) {
  line_.StartEstimate(Share(now, packets_delivered, expected_end_, expected_packets_));
}

double RunProgressLine::Share(Time now, std::uint64_t packets, Time expected_end,
                              std::uint64_t expected_packets) {
  double share = 0;
  if (expected_packets > 0)
    share = static_cast<double>(packets) / static_cast<double>(expected_packets);
  if (expected_end > 0) {
    share = std::max(share, static_cast<double>(now) / static_cast<double>(expected_end));
  }
  return share;
}

void MeasurementsProgress::NextMeasurement() {
  ++at_;
  passed_ = expected_ = 0;
}

double MeasurementsProgress::Share(Time now) const {
  const auto here = work_.begin() + static_cast<std::ptrdiff_t>(at_);
  const double all = std::accumulate(work_.begin(), work_.end(), 0.0);
  double done = std::accumulate(work_.begin(), here, 0.0);
  if (here != work_.end() && expected_ > 0) {
    done += *here * std::min(1.0, (passed_ + static_cast<double>(now)) / (passed_ + expected_));
  }
  return all > 0 ? done / all : 0;
}

WaitingLine::WaitingLine(std::string what, bool always)
    : what_(std::move(what)), line_(always), thread_([this] { Tick(); }) {}

WaitingLine::~WaitingLine() {
  {
    const MutexLock guard(mutex_);
    ended_ = true;
  }
  ended_changed_.notify_one();
  thread_.join();
}

void WaitingLine::Tick() {
  const MutexLock lock(mutex_);
  const auto ended = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return ended_; };
  while (!ended_changed_.wait_for(mutex_, kInterval, ended)) {
    if (line_.Due())
      line_.Write(fmt::format("{}, wall {}", what_, FormatWall(line_.wall_seconds())));
  }
}

LocalRunProgress::LocalRunProgress(const Scenario& scenario, NodeId nodes, bool always,
                                   RunOptions& options)
    : line_(scenario, always), building_(std::in_place, "building the machine", always) {
  options.progress_every_windows = EveryWindows(nodes);
  options.progress = [this](const RunProgress& p) { Show(p.now, p.packets_delivered); };
}

void LocalRunProgress::Show(Time now, std::uint64_t packets_delivered) {
  if (building_.has_value()) {
    building_.reset();
    line_.StartEstimate(now, packets_delivered);
  }
  line_.Show(now, packets_delivered);
}

void LocalRunProgress::Clear() {
  building_.reset();
  line_.Clear();
}

std::uint64_t LocalRunProgress::EveryWindows(NodeId nodes) {
  return std::clamp<std::uint64_t>(kNodeWindows / std::max<std::uint64_t>(nodes, 1), 1,
                                   kWindowsMax);
}

}  // namespace percs
