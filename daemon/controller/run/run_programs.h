// Requests of the programs of all daemons (docs/endpoint.md), and whether virtual time waits for
// them.
//
// THREAD: calls do not overlap.
#pragma once

#include <cstdint>
#include <vector>

#include "percs/v1/state.pb.h"
#include "percs/v1/sync.pb.h"

namespace percs {

class RunPrograms {
 public:
  // Programs that are attached now, those of them that virtual time waits for, and how many more
  // have to attach before it begins.
  struct Counts {
    std::uint64_t attached = 0, owing = 0, awaited = 0;
  };
  // Virtual time begins when `wanted` programs have attached.
  RunPrograms(std::uint32_t processes, std::uint64_t wanted)
      : wanted_(wanted), by_process_(processes) {
    Count();
  }

  // Takes the submissions out of the report. Nothing is saved for each report: until something else
  // is, the daemon has its submissions and sends them again. Returns whether it is time to save,
  // because a daemon can keep only a limited number.
  bool OnReport(std::uint32_t process, v1::EndpointReport* report);
  // All submissions that have not been taken, of one hub in the order in which they take effect.
  std::vector<v1::EndpointSubmission> Take();
  // The submission of this number, and those before it, have taken effect or were refused.
  void Taken(std::uint32_t process, std::uint64_t number);
  // Its daemon is lost: requests of its programs to lost hubs never take effect.
  void Lose(std::uint32_t process);
  // Another daemon has its place, with no programs yet.
  void Forget(std::uint32_t process);
  // Virtual time waits for no program from now on.
  void Stop();

  const Counts& counts() const { return counts_; }
  bool stopped() const { return stopped_; }
  // A program is there, or is still to come, so the run is not over.
  bool expected() const { return !stopped_ && (counts_.attached > 0 || counts_.awaited > 0); }
  // Virtual time is held until programs have acted.
  bool hold() const { return !stopped_ && (counts_.owing > 0 || counts_.awaited > 0); }

  void Save(v1::SavedRun* saved) const;
  void Restore(const v1::SavedRun& saved);

 private:
  struct Programs {
    v1::EndpointReport last;  // with the submissions that have not taken effect
    std::uint64_t taken = 0;  // number of the last submission that has
  };
  void Count();

  const std::uint64_t wanted_;
  std::vector<Programs> by_process_;
  Counts counts_;
  bool complete_ = false;  // as many as required have attached
  bool stopped_ = false;
  std::uint64_t reports_ = 0;  // of all daemons
};

}  // namespace percs
