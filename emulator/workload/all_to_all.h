// Every hub sends the same number of bytes to every other hub, once.
#pragma once

#include "emulator/workload/hub_workload.h"

namespace percs {

// Destination of step 0..nodes-1 of a hub's schedule; one of them is the hub itself. `linear` goes
// through all hubs in node order, so everyone aims at the same hub at once. `spread` changes
// supernode at every step and starts the hubs of a supernode evenly over all supernodes, so that
// every D link has work from the first step to the last; no two hubs anywhere aim at the same hub,
// and what one supernode sends to another goes to all its hubs in turn.
NodeId AllToAllDestination(const Topology& topology, NodeId node, std::uint32_t step,
                           Schedule schedule);

class AllToAll : public HubWorkload {
 public:
  AllToAll(const AllToAllWorkload& workload, const Topology& topology, HubServices& hub)
      : workload_(workload), topology_(topology), hub_(hub) {}
  void Start() override;
  void OnBacklogShrunk() override;

 private:
  static constexpr std::size_t kBacklog = 128;
  bool SendNext();  // false when everything was given to the HFI

  const AllToAllWorkload& workload_;
  const Topology& topology_;
  HubServices& hub_;
  std::uint32_t step_ = 0;
};

}  // namespace percs
