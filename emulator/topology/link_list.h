// Networks of switches as text: a line for each link, or the sizes of a grid.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "emulator/topology/switch_graph.h"

namespace percs {

// `SWITCH SWITCH` or `SWITCH SWITCH CLASS`; the class is ll or lr (default). A switch is a name of
// letters, digits and dashes, and may say its port: `west-3:LR5`. Switches are numbered as they
// appear. A `#` begins a comment. INVALID_ARGUMENT says in which line what is wrong.
absl::StatusOr<GraphSpec> ParseLinkList(const std::string& text);

// A text that gives the same graph. REQUIRES: kind kListed.
std::string FormatLinkList(const GraphSpec& graph);

// "4x4x3": {4, 4, 3}, and back. INVALID_ARGUMENT if the text is none.
absl::StatusOr<std::vector<int>> ParseDims(absl::string_view text);
std::string FormatDims(const std::vector<int>& dims);

}  // namespace percs
