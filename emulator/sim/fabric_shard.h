// The part of a fabric that one thread runs: one or several groups of nodes. Nodes of one group
// hand packets to each other without a copy, and what they use is close together in memory. In a
// large machine a group is a supernode: memory that is spread over gigabytes costs ten times as
// much to reach, because the processor has to look for the addresses of its pages, too.
#pragma once

#include <memory>
#include <vector>

#include "emulator/node/edge_node.h"
#include "emulator/node/hub.h"
#include "emulator/sim/fabric.h"
#include "emulator/sim/hub_pipeline.h"

namespace percs {

struct Fabric::Shard {
  bool fetches = false;  // as WorkCounters has it
  std::vector<std::unique_ptr<Hub>> hubs;
  std::vector<std::unique_ptr<EdgeNode>> blades;
  HubPipeline pipeline;
  std::vector<Outbox> to_group;      // other groups of this process
  std::vector<Outbox> to_process;    // other processes
  Outbox nowhere;                    // what severed hubs send
  std::vector<ControlItem> control;  // of its hubs, to network management and to other hubs
};

}  // namespace percs
