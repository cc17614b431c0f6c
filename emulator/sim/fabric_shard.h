// The part of a fabric that one thread runs.
#pragma once

#include <memory>
#include <vector>

#include "emulator/node/edge_node.h"
#include "emulator/node/hub.h"
#include "emulator/sim/fabric.h"
#include "emulator/sim/hub_pipeline.h"

namespace percs {

struct Fabric::Shard {
  WorkCounters work;
  std::vector<EventNodes> events;  // by supernode, in a large machine
  std::vector<std::unique_ptr<Hub>> hubs;
  std::vector<std::unique_ptr<EdgeNode>> blades;
  HubPipeline pipeline;
  std::vector<Outbox> to_shard;      // other threads of this process
  std::vector<Outbox> to_process;    // other processes
  Outbox nowhere;                    // what severed hubs send
  std::vector<ControlItem> control;  // of its hubs, to network management and to other hubs
};

}  // namespace percs
