// The line that says how far a long command is, and how long it will take: on standard error, from
// the first second on. On a terminal it is written again in its place; elsewhere it is written only
// with --progress, as lines.
#pragma once

#include <CLI/CLI.hpp>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "emulator/scenario/scenario.h"
#include "emulator/sim/run.h"
#include "proto/process/mutex.h"

namespace percs {

// --progress, of every command that can take longer than two seconds.
void AddProgressOption(CLI::App& app, bool& always);

// THREAD: one at a time.
class ProgressLine {
 public:
  explicit ProgressLine(bool always);
  ~ProgressLine() { Clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // Whether anything is written at all.
  bool shows() const { return shows_; }
  // Whether it is time to write again; asking costs a few nanoseconds, writing a system call.
  bool Due() const { return shows_ && Clock::now() >= next_; }
  void Write(const std::string& text);
  // What was done so far says nothing about the time left, for example building a machine: the
  // estimate counts from now, when `share` (0 to 1) is done.
  void StartEstimate(double share);
  // Writes the Text if it is time. `share`: 0 to 1.
  void Show(const std::string& what, double share);
  void Clear();  // takes the line away again
  double wall_seconds() const;

  struct Point {
    double wall_seconds = 0;  // since the command began
    double share = 0;         // of all that is to be done, 0 to 1
  };
  // "`what`, wall 2.00 s, 25 %, ETA 6.00 s". The time left is judged by what was done since
  // `first`, and unknown until that is a hundredth.
  static std::string Text(const std::string& what, Point first, Point now);

 private:
  using Clock = std::chrono::steady_clock;
  bool terminal_, shows_;
  bool shown_ = false;
  Clock::time_point start_ = Clock::now();
  Point first_;  // where the estimate begins
  Clock::time_point next_ = start_ + std::chrono::seconds(1);
};

// Of a run of a scenario.
class RunProgressLine {
 public:
  RunProgressLine(const Scenario& scenario, bool always);
  // Whether it is time to show something again.
  bool Due() const { return line_.Due(); }
  void Show(Time now, std::uint64_t packets_delivered);
  // The machine is built: the estimate counts from now.
  void StartEstimate(Time now, std::uint64_t packets_delivered);
  void Clear() { line_.Clear(); }
  double wall_seconds() const { return line_.wall_seconds(); }

  // What is done, 0 to 1, by packets or by time, whichever is further. `expected_*`: 0 if unknown.
  static double Share(Time now, std::uint64_t packets, Time expected_end,
                      std::uint64_t expected_packets);

 private:
  Time expected_end_;
  std::uint64_t expected_packets_;
  ProgressLine line_;
};

// Of measurements one after the other, each of rounds of which the virtual time is about known.
class MeasurementsProgress {
 public:
  // `work`: what each measurement takes, in any unit.
  MeasurementsProgress(std::vector<double> work, bool always)
      : work_(std::move(work)), line_(always) {}
  // Whether it is shown at all.
  bool shows() const { return line_.shows(); }
  // A round of the measurement begins. It and all later ones of the measurement are expected to
  // take this virtual time, in ps; 0: not known.
  void StartRound(double expected) { expected_ = expected; }
  // `now`: virtual time in the round.
  void Show(const std::string& what, Time now) { line_.Show(what, Share(now)); }
  void EndRound(Time took) { passed_ += static_cast<double>(took); }
  void NextMeasurement();
  void Clear() { line_.Clear(); }

  // What is done of all measurements, 0 to 1.
  double Share(Time now) const;

 private:
  const std::vector<double> work_;
  std::size_t at_ = 0;                // the measurement that runs
  double passed_ = 0, expected_ = 0;  // of it: in rounds that have ended, in those that have not
  ProgressLine line_;
};

// For a call without intermediate answers, like building a large machine on daemons: what it does,
// and for how long.
class WaitingLine {
 public:
  WaitingLine(std::string what, bool always);
  ~WaitingLine();
  WaitingLine(const WaitingLine&) = delete;
  WaitingLine& operator=(const WaitingLine&) = delete;

 private:
  void Tick();

  const std::string what_;
  ProgressLine line_;  // of the thread
  Mutex mutex_;
  std::condition_variable_any ended_changed_;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

// Of a run in this process: that the machine is built, then how far the run is. Must outlive the
// run of `options`, of which it sets `progress` and `progress_every_windows`.
class LocalRunProgress {
 public:
  // `nodes`: of the whole machine.
  LocalRunProgress(const Scenario& scenario, NodeId nodes, bool always, RunOptions& options);
  // Whether it is time to show something again.
  bool Due() const { return building_.has_value() || line_.Due(); }
  void Show(Time now, std::uint64_t packets_delivered);
  void Clear();
  double wall_seconds() const { return line_.wall_seconds(); }

  // Windows of large machines take long: with more nodes it looks more often. 1 to 256.
  static std::uint64_t EveryWindows(NodeId nodes);

 private:
  RunProgressLine line_;
  std::optional<WaitingLine> building_;  // until the first windows have been run
};

}  // namespace percs
