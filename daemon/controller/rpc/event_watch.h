// One client that follows what happens to the fabric.
#pragma once

#include <cstdint>

#include "daemon/controller/controller.h"
#include "daemon/controller/rpc/control_service.h"

namespace percs {

class EventWatch final : public grpc::ServerWriteReactor<v1::EventBatch> {
 public:
  // With the lock held.
  EventWatch(Controller* controller, ControlService* service, std::uint64_t after, bool follow);
  void Begin() { Tick(); }
  void Refuse(const absl::Status& status);

  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  void Tick();
  // Sends what is new, if nothing is under way.
  void Look();
  void Fill(const FabricRun& run);

  Controller* controller_;
  ControlService* service_;
  const bool follow_;
  Timer timer_;
  std::uint64_t run_ = 0;    // whose events these are; 0: no run yet
  std::uint64_t after_ = 0;  // the last one sent
  v1::EventBatch batch_;
  bool writing_ = false, finished_ = false;
};

}  // namespace percs
