// Decides when a daemon that says nothing is lost (docs/faults.md, "Lost daemons"): it was asked,
// and has not answered for the deadline, counted only while this process itself is being scheduled.
// A batch run has no deadline unless it is given one.
//
// THREAD: everything is called with the process's lock held.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "daemon/controller/fabric_run.h"
#include "daemon/stream/process_lock.h"

namespace percs {

inline constexpr std::chrono::milliseconds kLiveDeadline(10'000);

class LossWatch {
 public:
  LossWatch(ProcessLock* lock, std::optional<std::chrono::milliseconds> deadline,
            std::chrono::milliseconds lost_after)
      : deadline_(deadline), lost_after_(lost_after), timer_(lock) {}

  // `awaited`: something is expected of the daemon in this place. `ask` makes it answer if it can;
  // `lose` ends it.
  void Start(std::function<bool(std::uint32_t)> awaited, std::function<void(std::uint32_t)> ask,
             std::function<void(std::uint32_t, const std::string&)> lose, std::uint32_t places,
             std::function<const FabricRun*()> run);
  void Stop() { timer_.Cancel(); }
  void Heard(std::uint32_t place) {
    if (place < silent_.size()) silent_[place] = {};
  }
  // What of the wall time between two looks counts as silence: nothing of a pause of our own, which
  // says nothing about others.
  static std::chrono::milliseconds Counted(std::chrono::nanoseconds between);
  // How long a daemon may be without a connection now.
  std::optional<std::chrono::milliseconds> Patience(const FabricRun* run) const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Silence {
    std::chrono::milliseconds time{0};
    bool asked = false;
  };
  void Look();

  const std::optional<std::chrono::milliseconds> deadline_;
  const std::chrono::milliseconds lost_after_;
  std::function<bool(std::uint32_t)> awaited_;
  std::function<void(std::uint32_t)> ask_;
  std::function<void(std::uint32_t, const std::string&)> lose_;
  std::function<const FabricRun*()> run_;
  std::vector<Silence> silent_;  // by place
  Clock::time_point looked_ = Clock::now();
  Timer timer_;
};

}  // namespace percs
