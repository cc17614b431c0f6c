// Options of a command that are the fields of a message, written as in a scenario file.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <string>

#include "client/percsctl/outcome.h"
#include "google/protobuf/message.h"

namespace percs {

using FieldTexts = std::map<std::string, std::string>;  // by the name of the field; "": not given

// Whether it is `wall:30s`.
bool IsWall(const std::string& text);
// `--flit-error-rate` for the field flit_error_rate, and so on for every field that is no message.
// `texts` has to stay until the command line is parsed.
void AddFieldOptions(CLI::App& app, const google::protobuf::Descriptor* type, FieldTexts* texts);
// Sets those that were given. Fails with ExitCode::kUsage and the name of the option.
Outcome SetFieldTexts(const FieldTexts& texts, google::protobuf::Message* message);

}  // namespace percs
