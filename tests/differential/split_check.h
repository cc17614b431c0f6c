// A scenario in one process, and split over up to four: the same digest, and nothing wrong.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "emulator/scenario/scenario.h"
#include "tests/support/split_run.h"

namespace percs::reference {

// What is wrong with either run, or differs. `tamper` is SplitOptions'.
std::vector<std::string> RunSplit(const Scenario& scenario,
                                  decltype(test::SplitOptions::tamper) tamper = nullptr);

}  // namespace percs::reference
