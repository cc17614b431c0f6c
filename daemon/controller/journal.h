// What came from outside, with the virtual time at which it took effect: the scenario of each run
// and every command. One JSON object per line.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "emulator/base/time.h"
#include "percs/v1/scenario.pb.h"

namespace percs {

class Journal {
 public:
  // "": keeps nothing. UNAVAILABLE if the folder cannot be written to.
  absl::Status Open(const std::string& folder);
  // The scenario is stored beside the journal, as JSON.
  void Applied(std::uint64_t run, const v1::Scenario& scenario);
  void Fault(std::uint64_t run, Time at, const std::string& link, bool up);
  // `what` as people are told it: "blade0:SPE3 down".
  void OtherFault(std::uint64_t run, Time at, const std::string& what);
  // The tables are not kept: a digest of them tells whether a file is the one that was loaded.
  void RoutesLoaded(std::uint64_t run, Time at, std::uint64_t hash);
  // `event`: tree_create or tree_delete.
  void Tree(std::uint64_t run, Time at, const std::string& name, const char* event);
  void Stopped(std::uint64_t run, Time at);
  void Ended(std::uint64_t run, const std::string& outcome);

 private:
  void Write(const std::string& line);
  std::string folder_;
};

}  // namespace percs
