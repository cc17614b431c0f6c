// One client that follows the events of a fabric.
#pragma once

#include <cstdint>

#include "daemon/controller/rpc/watch.h"

namespace percs {

class EventWatch final : public Watch<v1::EventBatch> {
 public:
  EventWatch(Controller* controller, ControlService* service, std::uint64_t after,
             bool follow) PERCS_LOCKED;
  void Begin() PERCS_LOCKED { Tick(); }
  void Look() PERCS_LOCKED override;

 private:
  void Tick() PERCS_LOCKED;
  void Fill(const FabricRun& run) PERCS_LOCKED;

  const bool follow_;
  std::uint64_t run_ = 0;    // whose events these are; 0: no run yet
  std::uint64_t after_ = 0;  // the last one sent
};

}  // namespace percs
