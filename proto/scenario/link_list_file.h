// The links of a network of kind file.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "percs/v1/scenario.pb.h"

namespace percs {

// The text of the list (emulator/topology/link_list.h), from `inline_links` or the file below
// `directory`.
absl::StatusOr<std::string> ReadLinkListFile(const v1::Topology& topology,
                                             const std::string& directory);

}  // namespace percs
