// Loops of collectives among tasks in scenarios.
#pragma once

#include <cstdint>
#include <vector>

#include "emulator/scenario/scenario.h"
#include "percs/v1/common.pb.h"
#include "percs/v1/scenario.pb.h"
#include "proto/scenario/errors.h"

namespace percs {

// Defaults where a field is unset.
HostParameters BuildHostParameters(const v1::HostParameters& message);
// `hubs` of the machine, 0 if that is not known; every problem goes to the list.
CollectiveWorkload BuildCollective(const v1::TaskCollective& message,
                                   const std::vector<TreeSpec>& trees, std::uint32_t hubs,
                                   ErrorList* errors);

}  // namespace percs
