// Descriptions of the scenario schema, for editors and for people. All of it comes from the message
// descriptors.
#pragma once

#include <string>

#include "percs/v1/scenario.pb.h"

namespace percs {

// JSON Schema (draft 7) of scenario files, ending with a newline.
std::string JsonSchema();

// The tables of docs/scenario.md, in Markdown.
std::string ScenarioReference();

// The scenario as a YAML file that reads back to the same message (without an inline trace).
std::string PrintScenarioYaml(const v1::Scenario& scenario);

}  // namespace percs
