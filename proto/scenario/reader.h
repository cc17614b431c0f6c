// Reads scenario files: YAML and JSON (JSON is YAML) by walking the message descriptor, textproto
// by protobuf's own parser. Every error says file:line:column, the path of the field, what is wrong
// and what would be right; all errors of a file are reported together, one per line.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "percs/v1/scenario.pb.h"
#include "proto/scenario/errors.h"

namespace percs {

enum class ScenarioFormat { kYaml, kJson, kTextproto };

// A scenario with the places of its fields, so that later errors can name them too.
struct LoadedScenario {
  v1::Scenario scenario;
  SourceMarks marks;
  std::string directory;  // of the file; relative trace files start here
};

// Syntax, names, types, units, ranges and required fields; checks that need the machine (link
// names, sizes that do not fit together, the trace) are in BuildScenario.
absl::StatusOr<LoadedScenario> LoadScenarioText(const std::string& text, const std::string& name,
                                                ScenarioFormat format);
// By its extension, .yaml .yml .json .textproto or .pbtxt; INVALID_ARGUMENT for another. NOT_FOUND
// if there is no such file.
absl::StatusOr<LoadedScenario> LoadScenarioFile(const std::string& path);

absl::StatusOr<v1::Scenario> ReadScenarioText(const std::string& text, const std::string& name,
                                              ScenarioFormat format);
absl::StatusOr<v1::Scenario> ReadScenarioFile(const std::string& path);

}  // namespace percs
