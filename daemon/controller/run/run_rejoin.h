// A daemon on its way into the place of a lost one; one at a time.
//
// The survivors that share links with it open streams to it -> it is configured, builds its hubs
// and reaches the survivors -> its rejoin becomes a command. If another daemon is lost meanwhile,
// it begins again, as another attempt.
//
// THREAD: calls do not overlap.
#pragma once

#include <cstdint>
#include <optional>
#include <set>

namespace percs {

class RunRejoin {
 public:
  bool under_way() const { return current_.has_value(); }
  bool Of(std::uint32_t process) const { return current_ && current_->process == process; }
  bool IsAttempt(std::uint64_t attempt) const { return current_ && current_->attempt == attempt; }
  // REQUIRES: under_way().
  std::uint32_t process() const { return current_->process; }
  std::uint64_t attempt() const { return current_->attempt; }

  // Attempts of controllers before this one, which were as many as `recoveries`, have other
  // numbers.
  void Begin(std::uint32_t process, std::uint64_t recoveries) {
    current_ = Current{process, recoveries << 32 | ++attempts_, {}};
  }
  void AwaitStream(std::uint32_t survivor) { current_->awaited.insert(survivor); }
  // Whether it was awaited.
  bool OnStream(std::uint32_t survivor, std::uint64_t attempt) {
    return IsAttempt(attempt) && current_->awaited.erase(survivor) > 0;
  }
  bool streams_open() const { return current_->awaited.empty(); }
  void Configured() { current_->configured = true; }
  // It has built its hubs and reaches the survivors.
  bool IsReady(std::uint64_t attempt) const { return IsAttempt(attempt) && current_->configured; }
  // It has to say something, or to be reached.
  bool Awaits(std::uint32_t process) const {
    return current_ && (current_->process == process || current_->awaited.contains(process));
  }
  // It could not be journalled. Returns whether for the first time.
  bool Refused() {
    const bool first = !current_->refused;
    current_->refused = true;
    return first;
  }
  void End() { current_.reset(); }

 private:
  struct Current {
    std::uint32_t process = 0;
    std::uint64_t attempt = 0;
    std::set<std::uint32_t> awaited;  // survivors that have not opened a stream to it yet
    bool configured = false;
    bool refused = false;
  };
  std::optional<Current> current_;
  std::uint64_t attempts_ = 0;
};

}  // namespace percs
