// Local events of a hub at regular instants, the same on every hub that has them; nothing leaves
// it.
#pragma once

#include "emulator/workload/hub_workload.h"

namespace percs {

// One event at a time on the first `hubs` hubs, all at the same instants, and nothing on any link:
// what a window of virtual time costs by itself.
struct TickWorkload {
  std::uint64_t hubs = 0;  // in node order; 0: all
  Time period = kMicrosecond;
  std::uint64_t count = 1000;  // per hub

  std::unique_ptr<HubWorkload> operator()(HubServices& hub) const;  // an OtherWorkload
};

class Ticks : public HubWorkload {
 public:
  Ticks(const TickWorkload& workload, HubServices& hub) : workload_(workload), hub_(hub) {}
  void Start() override;
  void OnTimer(std::uint64_t token) override;

 private:
  const TickWorkload workload_;
  HubServices& hub_;
  std::uint64_t left_ = 0;
};

}  // namespace percs
