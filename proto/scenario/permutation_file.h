// The list of the pattern permutation: senders and receivers.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "emulator/topology/topology.h"
#include "percs/v1/scenario.pb.h"

namespace percs {

// The text of the list, from `inline_permutation` or the file below `directory`.
absl::StatusOr<std::string> ReadPermutationFile(const v1::PatternTraffic& traffic,
                                                const std::string& directory);

// One line for each sender, `SENDER RECEIVER`: two different places, each the name of a hub or a
// number of a place from 0 on; of hubs with several endpoints also `NAME.ENDPOINT`. A `#` begins a
// comment. No place sends or receives twice. INVALID_ARGUMENT says in which line what is wrong.
absl::StatusOr<std::vector<NodeId>> ParsePermutation(const std::string& text,
                                                     const Topology& topology);

}  // namespace percs
