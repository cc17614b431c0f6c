// Runs a scenario from start to end, on one thread or several.
#pragma once

#include <gtest/gtest.h>

#include "emulator/sim/run.h"

namespace percs::test {

// A failed run is a failure of the test.
inline RunResult Play(const Scenario& scenario) {
  auto result = RunScenario(scenario, RunOptions());
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *result : RunResult();
}

}  // namespace percs::test
