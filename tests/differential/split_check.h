// A scenario in one process, and split over up to four: the same digest, and nothing wrong.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "emulator/scenario/scenario.h"
#include "tests/support/split_run.h"

namespace percs::reference {

// What is wrong with a run that is split, or differs from the digest `one`. `tamper` is
// SplitOptions'.
std::vector<std::string> SplitAgainst(const Scenario& scenario, const Digest& one,
                                      decltype(test::SplitOptions::tamper) tamper = nullptr);
// Likewise, and what is wrong with the run in one process that gives that digest.
std::vector<std::string> RunSplit(const Scenario& scenario,
                                  decltype(test::SplitOptions::tamper) tamper = nullptr);

}  // namespace percs::reference
