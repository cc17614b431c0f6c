// Programs of windows in scenarios.
#pragma once

#include "emulator/scenario/window_program.h"
#include "emulator/topology/topology.h"
#include "percs/v1/windows.pb.h"
#include "proto/scenario/errors.h"

namespace percs {

WindowWorkload BuildWindows(const v1::WindowPrograms& message, const Topology& topology,
                            ErrorList* errors);

}  // namespace percs
