// An example scenario, run in this process.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "emulator/sim/run.h"
#include "proto/scenario/build.h"
#include "proto/scenario/file.h"
#include "tests/support/source_dir.h"

namespace percs::test {

// Of deploy/scenarios/NAME.yaml, which has to run without a violation.
inline RunResult ExampleResult(const std::string& name) {
  const auto message = ReadScenarioFile(SourceDir() + "/deploy/scenarios/" + name + ".yaml");
  EXPECT_TRUE(message.ok()) << message.status();
  const auto scenario = message.ok() ? BuildScenario(*message, "") : message.status();
  EXPECT_TRUE(scenario.ok()) << scenario.status();
  if (!scenario.ok()) return {};
  auto result = RunScenario(*scenario, {});
  EXPECT_TRUE(result.ok()) << result.status();
  if (!result.ok()) return {};
  EXPECT_THAT(result->violations, testing::IsEmpty());
  return *std::move(result);
}

inline std::uint64_t Dropped(const RunResult& result, DropReason reason) {
  return result.total.packets_dropped[static_cast<std::size_t>(reason)];
}

}  // namespace percs::test
