// The part of a fabric that one thread runs.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "emulator/node/edge_node.h"
#include "emulator/node/hub.h"
#include "emulator/sim/fabric.h"
#include "emulator/sim/hub_pipeline.h"

namespace percs {

// Each in cache lines of its own, and what other threads read after a step apart from the rest.
struct alignas(64) Fabric::Shard {
  // What this part sent in one step, by the part that takes it in, and the time before which
  // nothing more happens in this part or follows from that.
  struct HandedOn {
    std::vector<Outbox> to_shard;
    Time next = kNever;
  };

  Prospect prospect;                 // at the end of the last window
  std::vector<ControlItem> control;  // of its hubs, to network management and to other hubs
  // Of this step, and of the last one: another thread may still take that in.
  alignas(64) std::array<HandedOn, 2> handed_on;
  alignas(64) unsigned step = 0;  // of the window, the next one
  Time begin = 0, step_end = 0;   // of a step: nothing that is still to happen is before the begin
  WorkCounters work;
  std::vector<EventNodes> events;  // by supernode, in a large machine
  std::vector<std::unique_ptr<Hub>> hubs;
  std::vector<std::unique_ptr<EdgeNode>> blades;
  HubPipeline pipeline;
  std::vector<Outbox> to_shard;    // other threads of this process, in this step
  std::vector<std::int64_t> owed;  // packets that came from each of them, less those that went
  std::vector<Outbox> to_process;  // other processes
  Outbox nowhere;                  // what severed hubs send

  // After its nodes have run. Where traffic goes one way only, packets would gather at its end.
  void BalancePackets() {
    constexpr std::int64_t kOwedMax = 256;
    for (std::size_t to = 0; to < to_shard.size(); ++to) {
      owed[to] -= static_cast<std::int64_t>(to_shard[to].packets.size());
      if (owed[to] <= kOwedMax) continue;
      for (; owed[to] > 0 && work.packets.free() > 0; --owed[to])
        to_shard[to].spare.push_back(work.packets.Take());
    }
  }
  WorkLeft work_left() const { return {work.unfinished, work.resident}; }
  Time NextEventTime() const {
    Time t = kNever;
    for (const auto& hub : hubs) t = std::min(t, hub->next_time());
    for (const auto& blade : blades) t = std::min(t, blade->next_time());
    return t;
  }
};

}  // namespace percs
