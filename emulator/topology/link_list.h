// Networks of switches as lists of links: plain text, a line for each link.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "emulator/topology/switch_graph.h"

namespace percs {

// `SWITCH SWITCH` or `SWITCH SWITCH CLASS`; the class is ll or lr (default). A switch is a name of
// letters, digits and dashes, and may say its port: `west-3:LR5`. Switches are numbered as they
// appear. A `#` begins a comment. INVALID_ARGUMENT says in which line what is wrong.
absl::StatusOr<GraphSpec> ParseLinkList(const std::string& text);

// A text that gives the same graph. REQUIRES: kind kListed.
std::string FormatLinkList(const GraphSpec& graph);

}  // namespace percs
