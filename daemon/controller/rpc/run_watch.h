// One client that watches a run: progress now and then, at last the result.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "daemon/controller/controller.h"
#include "daemon/controller/rpc/control_service.h"

namespace percs {

class RunWatch final : public grpc::ServerWriteReactor<v1::RunEvent> {
 public:
  // With the lock held.
  RunWatch(Controller* controller, ControlService* service, std::uint64_t run,
           std::chrono::milliseconds interval);
  void Begin();
  // The watched run may have ended.
  void Look();
  void Refuse(const absl::Status& status);
  std::uint64_t run() const { return run_; }

  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  void Tick();
  void WriteProgress(const FabricRun& run);

  Controller* controller_;
  ControlService* service_;
  const std::uint64_t run_;
  const std::chrono::milliseconds interval_;
  Timer timer_;
  v1::RunEvent event_;
  bool writing_ = false, finished_ = false, last_sent_ = false;
};

}  // namespace percs
