// What must hold for every scenario: a run ends, and every way to run it gives the same result.
#pragma once

#include <cstdint>
#include <string>

#include "percs/v1/scenario.pb.h"

namespace percs::generate {

// Why the scenario fails; empty if it does not. It is checked, written as a file and read again,
// and run: in one part, in two, split over up to four processes whose batches cross as bytes, and
// with random commands twice. A run of many windows is cut short. Commands and the order of batches
// follow from the scenario's own seed.
std::string FailureOf(const v1::Scenario& scenario);

// Of a scenario drawn from `seed`; also a refusal that says nothing.
std::string FailureOf(std::uint64_t seed);

// The same scenario, stopped where it has had enough windows for a test if it goes on for longer.
v1::Scenario Bounded(v1::Scenario scenario);

}  // namespace percs::generate
