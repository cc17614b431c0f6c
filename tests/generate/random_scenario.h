// Random scenarios and commands, from the schema; and what is left of one when everything that does
// not matter for a failure is left out.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "percs/v1/control.pb.h"
#include "percs/v1/scenario.pb.h"

namespace percs::generate {

// As drawn, at times something that no machine can be built from; small enough that a run takes
// milliseconds. A trace is in the file that `directory` (SourceDir()) has.
v1::Scenario DrawScenario(std::uint64_t seed);
// Without what BuildScenario and CheckScenario refuse. `refused`, if given, gets their messages.
v1::Scenario RandomScenario(std::uint64_t seed, std::vector<std::string>* refused = nullptr);
// Commands for a run of the scenario up to `end`, in the order of time.
std::vector<v1::JournalRecord> RandomCommands(std::uint64_t seed, const v1::Scenario& scenario,
                                              std::int64_t end);

// Leaves out fields and elements, and makes values those of a file that does not say, as long as
// the rest fails. `fails` looks at the message. REQUIRES: fails().
void ShrinkMessage(google::protobuf::Message* message, const std::function<bool()>& fails);

}  // namespace percs::generate
