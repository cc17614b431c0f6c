// One client that watches a run: progress from time to time, then the result.
#pragma once

#include <chrono>
#include <cstdint>

#include "daemon/controller/rpc/watch.h"

namespace percs {

class RunWatch final : public Watch<v1::RunEvent> {
 public:
  RunWatch(Controller* controller, ControlService* service, std::uint64_t run,
           std::chrono::milliseconds interval) PERCS_LOCKED;
  void Begin() PERCS_LOCKED { Tick(); }
  void Look() PERCS_LOCKED override;
  void OnRunEnded(std::uint64_t run) PERCS_LOCKED override {
    if (run == run_) Look();
  }

 private:
  void Tick() PERCS_LOCKED;
  void WriteProgress(const FabricRun& run) PERCS_LOCKED;

  const std::uint64_t run_;
  const std::chrono::milliseconds interval_;
  bool last_sent_ = false;
};

}  // namespace percs
