// Every hub sends the same number of bytes to every other hub, once.
#pragma once

#include "emulator/workload/hub_workload.h"

namespace percs {

// Destination of step 0..nodes-1 of a hub's schedule; one of them is the hub itself. `linear` goes
// through all hubs in node order, so everyone aims at the same hub at once. `spread` starts everyone
// elsewhere and changes supernode at every step, so that at any step the hubs of a supernode aim at
// different supernodes, no two hubs anywhere at the same hub, and what one supernode sends to another
// goes to all its hubs in turn.
NodeId AllToAllDestination(const Topology& topology, NodeId node, std::uint32_t step, Schedule schedule);

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
