// Decides when a daemon is missing and when it is lost (docs/faults.md, "Lost daemons"). A daemon
// is silent while it has no connection, or while something is awaited of it and it does not answer.
// After kMissingAfter of silence it is missing: calls that wait for it get an error. After the
// deadline it is lost. A batch run has no deadline unless it is given one.
//
// Silence counts only while this process is scheduled and can decide: while its state cannot be
// saved, its messages are not sent, and its decisions have no effect. A daemon cannot connect while
// this process is paused. If it has no connection after a pause, it has as long as the pause was to
// connect, but at most kToConnect.
//
// Pure: the caller says what time it is. THREAD: calls do not overlap.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace percs {

inline constexpr std::chrono::milliseconds kLiveDeadline(10'000);

class LossWatch {
 public:
  using Clock = std::chrono::steady_clock;
  using Wall = std::chrono::milliseconds;
  static constexpr Wall kLookEvery{100};
  static constexpr Wall kLateAfter{500};  // such a look follows a pause of this process
  static constexpr Wall kMissingAfter{2'000};
  static constexpr Wall kToConnect{2'000};  // several attempts of a daemon

  // One place, as a look finds it.
  struct Place {
    bool taken = false;  // by a daemon that is not lost
    bool connected = false;
    bool gone = false;     // its process has ended; checked only without a connection
    bool awaited = false;  // something is expected of it
  };
  class Port {
   public:
    virtual ~Port() = default;
    virtual Place See(std::uint32_t place) const = 0;
    // Makes the daemon answer if it can.
    virtual void Ask(std::uint32_t place) = 0;
    virtual void Lose(std::uint32_t place, const std::string& why) = 0;
  };
  // Common to all places at a look.
  struct Rules {
    bool can_decide = true;  // decisions can be saved
    // How long a daemon may be silent; none: as long as its process is there.
    std::optional<Wall> without_answer, without_connection;
  };
  struct Silence {
    Wall time{0};
    bool connected = false;
    std::optional<Wall> left;  // until it is lost; none: no deadline
  };

  LossWatch(std::uint32_t places, Port* port) : port_(port), silent_(places) {}

  // To be called every kLookEvery.
  void Look(Clock::time_point now, const Rules& rules);
  // The daemon said something.
  void Heard(std::uint32_t place) { silent_[place] = {}; }
  // Of a daemon that is missing; none if it is not.
  std::optional<Silence> Missing(std::uint32_t place) const;

 private:
  struct State {
    Wall time{0};
    bool silent = false, connected = false, asked = false;
    std::optional<Wall> deadline;  // at the last look
  };
  void LookAt(std::uint32_t place, Wall passed, const Rules& rules);

  Port* port_;
  std::vector<State> silent_;  // by place
  std::optional<Clock::time_point> looked_;
  bool late_ = false;   // the last look was
  Wall to_connect_{0};  // what is left of the time that the last pauses gave
};

double WallSeconds(LossWatch::Wall time);
// For people: what is awaited of it, for how long, and when it is lost.
std::string DescribeSilence(const LossWatch::Silence& silence);

}  // namespace percs
