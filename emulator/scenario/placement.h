// Where tasks run: nodes in blocks, and on a node one task per hardware thread by one of the two
// mappings of paper 003 section 3.5.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "emulator/base/ids.h"
#include "emulator/scenario/host_parameters.h"

namespace percs {

enum class ThreadMapping : std::uint8_t {
  kCore,  // thread 0 of every core, then thread 1 of every core, ...
  kCpu,   // all threads of core 0, then those of core 1, ...
};

struct TaskPlacement {
  std::uint32_t nodes = 1;           // nodes 0..nodes-1
  std::uint32_t tasks_per_node = 1;  // task = node * tasks_per_node + its number on the node
  int threads_per_core = 1;          // SMT mode: 1, 2 or 4
  ThreadMapping mapping = ThreadMapping::kCore;

  std::uint32_t tasks() const { return nodes * tasks_per_node; }
  NodeId NodeOf(std::uint32_t task) const { return task / tasks_per_node; }
  std::uint32_t LocalOf(std::uint32_t task) const { return task % tasks_per_node; }
  int CoreOf(std::uint32_t local) const {
    return static_cast<int>(mapping == ThreadMapping::kCore
                                ? local % kCoresPerNode
                                : local / static_cast<std::uint32_t>(threads_per_core));
  }
  int TasksOnCore(int core) const {
    int tasks = 0;
    for (std::uint32_t local = 0; local < tasks_per_node; ++local) tasks += CoreOf(local) == core;
    return tasks;
  }
  // INVALID_ARGUMENT if `hubs` nodes do not have the threads.
  absl::Status Check(std::uint32_t hubs) const;
};

}  // namespace percs
