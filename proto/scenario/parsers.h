// The two syntaxes behind reader.h. Each fills `scenario` and `marks` and reports to `errors`.
#pragma once

#include <string>

#include "percs/v1/scenario.pb.h"
#include "proto/scenario/errors.h"

namespace percs {

void ParseYaml(const std::string& text, v1::Scenario* scenario, SourceMarks* marks,
               ErrorList* errors);
void ParseTextproto(const std::string& text, v1::Scenario* scenario, SourceMarks* marks,
                    ErrorList* errors);

}  // namespace percs
