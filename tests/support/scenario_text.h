#pragma once

#include <string>

#include "emulator/scenario/scenario.h"
#include "proto/scenario/build.h"
#include "proto/scenario/reader.h"

namespace percs {

// The scenario that a YAML text means; files that it names are in `directory`.
inline absl::StatusOr<Scenario> Build(const std::string& yaml, const std::string& directory = "") {
  auto loaded = LoadScenarioText(yaml, "a.yaml", ScenarioFormat::kYaml);
  if (!loaded.ok()) return loaded.status();
  loaded->directory = directory;
  return BuildScenario(*loaded);
}

}  // namespace percs
