// The ratios of paper 002 (SMARTMAP) beside what the emulator measures: quad-core nodes, direct
// access against messages through shared memory, which are copied twice, and against messages that
// are copied once. No absolute time is published, so nothing is calibrated.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "emulator/base/share_observer.h"
#include "emulator/experiments/row.h"
#include "emulator/scenario/host_parameters.h"

namespace percs {

// What software costs on the machine measured, with its baseline of two copies.
HostParameters OpteronHost();

absl::StatusOr<std::vector<ValidationRow>> ValidateSmartmap(
    const std::string& only = "", const ShareObserver& progress = {},
    const HostParameters& host = OpteronHost());

}  // namespace percs
