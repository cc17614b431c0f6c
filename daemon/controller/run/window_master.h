// Decides the windows of virtual time from what processes report (docs/semantics.md rule 5). Pure:
// no gRPC, no clock; the in-process run opens the same windows.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "emulator/base/time.h"
#include "emulator/sim/fabric.h"
#include "percs/v1/state.pb.h"
#include "percs/v1/sync.pb.h"

namespace percs {

class WindowMaster {
 public:
  WindowMaster(std::uint32_t processes, Time lookahead)
      : lookahead_(lookahead), states_(processes) {}

  // INVALID_ARGUMENT for impossible reports: peers that do not exist, arrivals too early.
  absl::Status OnReport(std::uint32_t process, const v1::WindowReport& report);
  // A command makes the process run from `at` on.
  void Wake(std::uint32_t process, Time at);

  // The process is lost: it has no events, no work and no batches any more.
  void Lose(std::uint32_t process);
  // Another one takes its place.
  void Rejoin(std::uint32_t process) { states_[process].lost = false; }
  bool IsLost(std::uint32_t process) const { return states_[process].lost; }
  bool IsRunning(std::uint32_t process) const { return states_[process].running; }
  // Where the last window begins.
  Time window_from() const { return window_from_; }

  bool anyone_running() const { return running_ > 0; }
  // Earliest event or undelivered arrival of all; kNever if none.
  Time next() const;
  // Earliest event that does more than keep the clock; kNever if none, even if something is on its
  // way.
  Time next_foreground() const;
  // End of the last window.
  Time now() const { return now_; }
  Time lookahead() const { return lookahead_; }
  WorkLeft left() const;
  std::uint64_t packets_delivered() const;
  std::uint64_t flits_moved() const;
  std::uint64_t windows() const { return windows_; }
  std::uint64_t windows_of(std::uint32_t process) const { return states_[process].windows; }
  std::uint64_t reconnects_of(std::uint32_t process) const { return states_[process].reconnects; }

  // Opens the window up to `end`. REQUIRES: no process is running. Returns the processes that have
  // something to do in it; each runs until its report.
  const std::vector<std::uint32_t>& Open(Time end);
  // At the end of a run, an empty window for processes that have batches in flight to them, so that
  // they apply all batches before they report results. REQUIRES: no process is running.
  const std::vector<std::uint32_t>& Close();
  // Its state, for a controller that takes over.
  void Save(v1::SavedMaster* saved) const;
  // REQUIRES: nothing was reported yet. INVALID_ARGUMENT if it is of other processes.
  absl::Status Restore(const v1::SavedMaster& saved);
  // The batches that the process must have before it runs.
  void FillGrant(std::uint32_t process, v1::WindowGrant* grant);

 private:
  struct Needed {
    std::uint32_t process;
    std::uint64_t batches;
  };
  struct State {
    Time next_event = kNever, next_foreground = kNever;
    Time arrival = kNever;  // earliest among what was sent to it since its last grant
    Time wake = kNever;     // earliest of what its next grant contains; an earlier report does not
                            // include it
    std::vector<Needed> needed;
    WorkLeft left;
    std::uint64_t packets_delivered = 0, flits_moved = 0, windows = 0, reconnects = 0;
    bool running = false, lost = false;
  };

  const Time lookahead_;
  std::vector<State> states_;
  std::vector<std::uint32_t> granted_;
  int running_ = 0;
  Time now_ = 0, window_from_ = 0;
  std::uint64_t windows_ = 0;
};

}  // namespace percs
