// Decides the windows of virtual time from what processes report (docs/semantics.md rule 5,
// docs/protocol.md "Windows"). Pure: no gRPC, no clock.
//
// Virtual time passes in spans. All processes run up to the end of a span, in one window after
// another, each as far as nothing can reach it that it does not have. Everything before now() has
// happened; between two spans, nothing after it has.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "emulator/base/time.h"
#include "emulator/sim/fabric.h"
#include "percs/v1/state.pb.h"
#include "percs/v1/sync.pb.h"

namespace percs {

class WindowMaster {
 public:
  // `crossing`: in less time nothing gets from one process to another; at least `lookahead`, which
  // is that between hubs.
  WindowMaster(std::uint32_t processes, Time lookahead, Time crossing)
      : lookahead_(lookahead), crossing_(crossing), states_(processes) {}

  // INVALID_ARGUMENT for impossible reports: peers that do not exist, arrivals too early, lists of
  // different lengths or out of order.
  absl::Status OnReport(std::uint32_t process, const v1::WindowReport& report);
  // A command makes the process run from `at` on.
  void Wake(std::uint32_t process, Time at);

  // The process is lost: it has no events, no work and no batches any more.
  void Lose(std::uint32_t process);
  // Another one takes its place.
  void Rejoin(std::uint32_t process);
  bool IsLost(std::uint32_t process) const { return states_[process].lost; }
  bool IsRunning(std::uint32_t process) const { return states_[process].running; }
  // Of its last one.
  Time window_end(std::uint32_t process) const { return states_[process].clock; }
  // What the process has not reported, or will do when it is granted again, is not before this.
  Time unreported_from(std::uint32_t process) const;

  bool anyone_running() const { return running_ > 0; }
  // A process has not reported, or has something to do before the end of the span.
  bool in_span() const { return in_span_; }
  // Something waits for the end of the span: it is as soon as it can be, and now() from now on.
  // False if now() does not change.
  bool Hurry();
  // Earliest event or undelivered arrival of all; kNever if none.
  Time next() const;
  // Earliest event that does more than keep the clock; kNever if none, even if something is on its
  // way.
  Time next_foreground() const;
  // Never decreases. Between two spans it is the end of the last one.
  Time now() const { return in_span_ && !end_known_ ? begun_ : end_; }
  Time lookahead() const { return lookahead_; }
  WorkLeft left() const;
  std::uint64_t packets_delivered() const;
  std::uint64_t flits_moved() const;
  std::uint64_t windows() const { return windows_; }
  // Changes by anything else than reports, Open and Continue.
  std::uint64_t other_changes() const { return other_changes_; }
  std::uint64_t windows_of(std::uint32_t process) const { return states_[process].windows; }
  std::uint64_t reconnects_of(std::uint32_t process) const { return states_[process].reconnects; }

  // Begins the span up to `end` with its first window. REQUIRES: !in_span(). Returns the processes
  // that have something to do in it; each runs until its report. A span of one window ends where
  // it is to end, so that is now() at once.
  const std::vector<std::uint32_t>& Open(Time end);
  // The next window of the span. REQUIRES: in_span(), no process is running.
  const std::vector<std::uint32_t>& Continue();
  // At the end of a run, an empty window for processes that have batches in flight to them, so that
  // they apply all batches before they report results. REQUIRES: no process is running.
  const std::vector<std::uint32_t>& Close();
  // Its state, for a controller that takes over.
  void Save(v1::SavedMaster* saved) const;
  // REQUIRES: nothing was reported yet. INVALID_ARGUMENT if it is of other processes.
  absl::Status Restore(const v1::SavedMaster& saved);
  // The batches that the process must have before it runs, and how far that is.
  void FillGrant(std::uint32_t process, v1::WindowGrant* grant);

 private:
  struct Needed {
    std::uint32_t process;
    std::uint64_t batches;
    Time credit;          // arrival of the first one
    std::string carried;  // one batch that is here; empty: they are on the stream
  };
  struct State {
    Time next_event = kNever, next_foreground = kNever;
    Time output = kNever;   // earliest, of what it has
    Time arrival = kNever;  // earliest among what was sent to it since its last grant, but credits
    Time credit = kNever;   // earliest among credits sent since then
    Time awaited = kNever;  // and among those that it waits for
    Time wake = kNever;     // earliest of what its next grant contains; an earlier report does not
                            // include it
    Time from = 0;          // where its last window began
    Time clock = 0;         // where that ends: it may have run everything before
    std::vector<Needed> needed;            // of each process in the order in which it sent them
    std::vector<std::uint32_t> waits_for;  // processes, for credits; ascending
    Time next() const { return std::min({next_event, arrival, awaited, wake}); }
    // Before this it reaches no other process.
    Time EarliestOutput(Time crossing) const {
      return std::min({output, arrival + crossing, awaited + crossing, wake + crossing});
    }
    bool WaitsFor(std::uint32_t process) const {
      return std::binary_search(waits_for.begin(), waits_for.end(), process);
    }
    void Need(std::uint32_t process, std::uint64_t batches, Time credit,
              const std::string& carried);
    void FindCredits();
    WorkLeft left;
    std::uint64_t packets_delivered = 0, flits_moved = 0, windows = 0, reconnects = 0;
    bool running = false, lost = false;
  };

  // When a process reaches others at the earliest, if its next event may. Of any number: what a
  // report says is not checked.
  Time AtOnce(Time next_event) const { return std::min(next_event, kNever) + crossing_; }
  absl::Status Check(std::uint32_t process, const v1::WindowReport& report) const;
  void OnStill();

  const Time lookahead_, crossing_;
  std::vector<State> states_;
  std::vector<std::uint32_t> granted_;
  int running_ = 0;
  bool in_span_ = false, end_known_ = false;
  Time end_ = 0;    // of the last span
  Time begun_ = 0;  // all before it had happened when its last window was opened
  std::uint64_t windows_ = 0, other_changes_ = 0;
};

}  // namespace percs
