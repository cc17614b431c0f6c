// What tests of HFI windows say again and again.
#pragma once

#include "emulator/scenario/window_program.h"
#include "emulator/topology/topology.h"

namespace percs {

using Status = WindowStatus;

// Every program has opened its windows by then.
inline constexpr Time kLater = 20 * kMicrosecond;

// One drawer of four hubs.
inline TopologySpec Drawer() { return {1, 1, 4, 1}; }

}  // namespace percs
