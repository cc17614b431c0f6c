// One client that follows what happens to the fabric.
#pragma once

#include <cstdint>

#include "daemon/controller/rpc/watch.h"

namespace percs {

class EventWatch final : public Watch<v1::EventBatch> {
 public:
  // With the lock held.
  EventWatch(Controller* controller, ControlService* service, std::uint64_t after, bool follow);
  void Begin() { Tick(); }
  void Look() override;

 private:
  void Tick();
  void Fill(const FabricRun& run);

  const bool follow_;
  std::uint64_t run_ = 0;    // whose events these are; 0: no run yet
  std::uint64_t after_ = 0;  // the last one sent
};

}  // namespace percs
