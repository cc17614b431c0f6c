#include "emulator/workload/all_to_all.h"

namespace percs {

NodeId AllToAllDestination(const Topology& topology, NodeId node, std::uint32_t step,
                           Schedule schedule) {
  if (schedule == Schedule::kLinear) return step;
  const std::uint32_t supernodes = static_cast<std::uint32_t>(topology.supernodes());
  const std::uint32_t hubs = topology.leaves() / supernodes;
  const std::uint32_t s = static_cast<std::uint32_t>(topology.supernode_of(node));
  const std::uint32_t h = static_cast<std::uint32_t>(topology.hub_in_supernode(node));
  const std::uint32_t i = step % supernodes, j = step / supernodes;
  // 5: hubs of one drawer, which share a place in every arbitration, start far from each other.
  const std::uint32_t start = 5 * h % hubs * supernodes / hubs;
  return topology.node(static_cast<int>((s + start + i) % supernodes),
                       static_cast<int>((h + j) % hubs));
}

void AllToAll::Start() {
  ++hub_.context().work->unfinished;
  OnBacklogShrunk();
}

void AllToAll::OnBacklogShrunk() {
  // Enough packets at hand to keep every output of the hub busy.
  while (hub_.backlog() < kBacklog && SendNext()) continue;
}

bool AllToAll::SendNext() {
  const NodeContext& context = hub_.context();
  if (step_ == topology_.leaves()) return false;
  const NodeId to = AllToAllDestination(topology_, context.node, step_, workload_.schedule);
  if (to != context.node) {
    const WindowId from_window = SpreadWindow(to, *context.parameters);
    const WindowId to_window = SpreadWindow(context.node, *context.parameters);
    if (workload_.reliable) {
      hub_.SendMessage({to, from_window, to_window, workload_.bytes, 0,
                        workload_.payload == PayloadMode::kVerified});
    } else {
      hub_.SendRaw(to, from_window, to_window, workload_.bytes,
                   workload_.payload == PayloadMode::kVerified, nullptr);
    }
  }
  if (++step_ == topology_.leaves()) --hub_.context().work->unfinished;
  if (!workload_.reliable && context.work->fetches) {
    for (std::uint32_t others = 0; others < 3 && step_ + others < topology_.leaves(); ++others) {
      const NodeId then =
          AllToAllDestination(topology_, context.node, step_ + others, workload_.schedule);
      hub_.Expect(then, SpreadWindow(then, *context.parameters), static_cast<int>(others));
    }
  }
  return true;
}

}  // namespace percs
