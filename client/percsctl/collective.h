// What `percsctl collective` is asked for, and its two machines.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "client/percsctl/outcome.h"
#include "emulator/cell/blade_parameters.h"
#include "emulator/scenario/loop_workload.h"

namespace percs {

struct CollectiveArguments {
  Operation operation = Operation::kAllreduce;
  std::string algorithm, format;
  std::vector<std::uint64_t> sizes;  // bytes; empty: the machine's default
  std::uint64_t iterations = 0;      // 0: until the mean settles (SettlingCalls)
  bool progress = false, every_root = false;
  // Tasks on nodes; sizes, algorithm, operation and iterations are set from the above.
  CollectiveWorkload tasks;
  // SPEs of a Cell blade.
  std::string blade, loop = "back-to-back";
  int spes = cell::kSpes;
  std::uint32_t elements = 32;
};

Outcome MeasureOnBlade(const CollectiveArguments& arguments);
Outcome MeasureAmongTasks(const CollectiveArguments& arguments);
// Each task as the root of all calls, and a root that moves to the next task with every call.
Outcome MeasureEveryRoot(const CollectiveArguments& arguments);

}  // namespace percs
