#include "emulator/scenario/placement.h"

#include "fmt/format.h"

namespace percs {

absl::Status TaskPlacement::Check(std::uint32_t hubs) const {
  if (threads_per_core != 1 && threads_per_core != 2 && threads_per_core != 4) {
    return absl::InvalidArgumentError(
        fmt::format("{} threads per core: a POWER7 core runs 1, 2 or 4", threads_per_core));
  }
  if (nodes == 0 || nodes > hubs) {
    return absl::InvalidArgumentError(fmt::format(
        "tasks on {} nodes: the fabric has {} hubs, so write 1 to {}", nodes, hubs, hubs));
  }
  const std::uint32_t threads = static_cast<std::uint32_t>(kCoresPerNode * threads_per_core);
  if (tasks_per_node == 0 || tasks_per_node > threads) {
    return absl::InvalidArgumentError(
        fmt::format("{} tasks per node: {} cores with {} thread{} each run 1 to {}", tasks_per_node,
                    kCoresPerNode, threads_per_core, threads_per_core == 1 ? "" : "s", threads));
  }
  return absl::OkStatus();
}

}  // namespace percs
