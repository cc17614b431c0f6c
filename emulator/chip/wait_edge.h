#pragma once

#include "emulator/base/ids.h"

namespace percs {

// One input waits for an output's credit or VC, seen as an edge; a cycle of these is a deadlock.
struct WaitEdge {
  NodeId node;
  PortId input, output;
  VcId input_vc, output_vc;
};

}  // namespace percs
