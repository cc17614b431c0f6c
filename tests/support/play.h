// Runs a scenario from start to end, on one thread or several.
#pragma once

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "emulator/sim/run.h"

namespace percs::test {

// An executor with a thread for each part.
inline const Executor kThreads = [](int count, absl::FunctionRef<void(int)> body) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back([i, body] { body(i); });
  for (std::thread& thread : threads) thread.join();
};

// A failed run is a failure of the test.
inline RunResult Play(const Scenario& scenario) {
  auto result = RunScenario(scenario, RunOptions());
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *result : RunResult();
}

}  // namespace percs::test
