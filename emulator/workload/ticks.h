// Local events of a hub at regular instants, the same on every hub that has them; nothing leaves
// it.
#pragma once

#include "emulator/workload/hub_workload.h"

namespace percs {

class Ticks : public HubWorkload {
 public:
  Ticks(const TickWorkload& workload, HubServices& hub) : workload_(workload), hub_(hub) {}
  void Start() override;
  void OnTimer(std::uint64_t token) override;

 private:
  const TickWorkload& workload_;
  HubServices& hub_;
  std::uint64_t left_ = 0;
};

}  // namespace percs
