// From the public message to the machine's own struct: the one translation. Checks that need
// several fields: sizes that fit together, names of nodes and links, times that depend on each
// other.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "emulator/scenario/scenario.h"
#include "percs/v1/scenario.pb.h"
#include "proto/scenario/errors.h"
#include "proto/scenario/reader.h"

namespace percs {

// INVALID_ARGUMENT with one line per error. `marks`, when given, adds file:line:column to each.
// A trace comes from `inline_trace` if that is set, else from the file below `directory`.
absl::StatusOr<Scenario> BuildScenario(const v1::Scenario& message, const std::string& directory,
                                       const SourceMarks* marks = nullptr);
absl::StatusOr<Scenario> BuildScenario(const LoadedScenario& loaded);
// LoadScenarioFile, then BuildScenario.
absl::StatusOr<Scenario> BuildScenarioFile(const std::string& path);

// Defaults where a field is unset. REQUIRES: CheckFields found nothing. Of a machine with
// `endpoints`, whose links are all of one kind, the defaults of LR, D and HFI are what LL has, and
// that of W is the rate of all its endpoints.
P7ihParameters BuildParameters(const v1::P7ihParameters& message, int endpoints = 0);
// Rules between parameters, with the arithmetic.
void CheckParameters(const P7ihParameters& parameters, ErrorList* errors);

// Puts the content of the trace or permutation file into the message, so that it can be sent to
// another machine.
absl::Status InlineFiles(v1::Scenario* scenario, const std::string& directory);

// The text of the trace, uncompressed. INVALID_ARGUMENT or NOT_FOUND says which file and why.
absl::StatusOr<std::string> ReadTrace(const v1::Trace& trace, const std::string& directory);

// How fast virtual time may run against wall time.
struct Pacing {
  bool live = false;
  Time pace = kMicrosecond;  // virtual time per wall second; 0: do not wait
  bool idle_holds = false;   // live: with only faults to come, virtual time is held
};
Pacing PacingOf(const v1::Scenario& scenario);

}  // namespace percs
