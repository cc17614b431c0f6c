// One client that watches a run: progress now and then, at last the result.
#pragma once

#include <chrono>
#include <cstdint>

#include "daemon/controller/rpc/watch.h"

namespace percs {

class RunWatch final : public Watch<v1::RunEvent> {
 public:
  // With the lock held.
  RunWatch(Controller* controller, ControlService* service, std::uint64_t run,
           std::chrono::milliseconds interval);
  void Begin() { Tick(); }
  void Look() override;
  void OnRunEnded(std::uint64_t run) override {
    if (run == run_) Look();
  }

 private:
  void Tick();
  void WriteProgress(const FabricRun& run);

  const std::uint64_t run_;
  const std::chrono::milliseconds interval_;
  bool last_sent_ = false;
};

}  // namespace percs
