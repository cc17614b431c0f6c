// Errors and lost lanes of links, as a scenario or a command says them.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "emulator/scenario/link_impairment.h"
#include "emulator/scenario/p7ih.h"
#include "percs/v1/scenario.pb.h"

namespace percs {

bool IsLinkImpairment(const v1::Fault& fault);
// One per direction it concerns. INVALID_ARGUMENT or NOT_FOUND says what would be right.
absl::StatusOr<std::vector<LinkImpairment>> BuildLinkImpairments(const v1::Fault& fault,
                                                                 const Topology& topology,
                                                                 const P7ihParameters& parameters);
// "sn0-d0-h0:LR0 loses 3 lanes". REQUIRES: one that was built, not empty.
std::string DescribeLinkImpairments(const std::vector<LinkImpairment>& impairments,
                                    const Topology& topology);

}  // namespace percs
