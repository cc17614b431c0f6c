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

  // Whether it is time to write again; asking costs a few nanoseconds, writing a system call.
  bool Due() const { return shows_ && Clock::now() >= next_; }
  void Write(const std::string& text);
  // `what`, the wall time so far and, from a hundredth on, the time left. `share`: 0 to 1.
  void Show(const std::string& what, double share);
  void Clear();  // takes the line away again
  double wall_seconds() const;

  // ", 25 %, ETA 3 min 00 s" or ", ETA unknown".
  static std::string Estimate(double wall_seconds, double share);

 private:
  using Clock = std::chrono::steady_clock;
  bool terminal_, shows_;
  bool shown_ = false;
  Clock::time_point start_ = Clock::now();
  Clock::time_point next_ = start_ + std::chrono::seconds(1);
};

// Of a run of a scenario.
class RunProgressLine {
 public:
  RunProgressLine(const Scenario& scenario, bool always);
  // Whether it is time to show something again.
  bool Due() const { return line_.Due(); }
  void Show(Time now, std::uint64_t packets_delivered);
  void Clear() { line_.Clear(); }
  double wall_seconds() const { return line_.wall_seconds(); }

  // The text. `expected_*`: 0 if unknown.
  static std::string Text(Time now, std::uint64_t packets, double wall_seconds, Time expected_end,
                          std::uint64_t expected_packets);

 private:
  Time expected_end_;
  std::uint64_t expected_packets_;
  ProgressLine line_;
};

// Of a call that says nothing until it answers, like building a large machine on daemons: what it
// does and for how long it has.
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
  // Whether it is time to show something again. The machine is built, as its windows run.
  bool Due();
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
