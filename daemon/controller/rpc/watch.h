// One client that follows something of the fabric over a stream: what the streams of WatchRun and
// WatchEvents share.
#pragma once

#include "absl/status/status.h"
#include "daemon/controller/controller.h"
#include "daemon/controller/rpc/control_service.h"
#include "proto/process/grpc_status.h"

namespace percs {

// `Event`: the message of the stream. gRPC's reactions take the process's lock. Deletes itself when
// gRPC is done with it.
template <typename Event>
class Watch : public AnyWatch, public grpc::ServerWriteReactor<Event> {
 public:
  Watch(Controller* controller, ControlService* service)
      : controller_(controller), service_(service), timer_(&controller->lock()) {
    controller_->lock().Add();
    service_->AddWatch(this);
  }

  // Ends the stream with `status`, once.
  void Refuse(const absl::Status& status) PERCS_LOCKED final {
    if (finished_) return;
    finished_ = true;
    timer_.Cancel();
    this->Finish(ToGrpc(status));
  }

  void OnWriteDone(bool ok) final {
    const LockGuard guard(controller_->lock().mutex());
    writing_ = false;
    if (!ok) return Gone();
    Look();
  }
  void OnCancel() final {
    const LockGuard guard(controller_->lock().mutex());
    if (!writing_) Gone();
  }
  void OnDone() final {
    ProcessLock& lock = controller_->lock();
    const LockGuard guard(lock.mutex());
    service_->RemoveWatch(this);
    delete this;
    lock.Remove();
  }

 protected:
  // Sends `event_`, which stays as it is until OnWriteDone.
  void Send() PERCS_LOCKED {
    writing_ = true;
    this->StartWrite(&event_);
  }

  Controller* const controller_;
  ControlService* const service_;
  Timer timer_ PERCS_GUARDED;
  Event event_ PERCS_GUARDED;
  bool writing_ PERCS_GUARDED = false;
  bool finished_ PERCS_GUARDED = false;

 private:
  void Gone() PERCS_LOCKED { Refuse(absl::CancelledError("the client disconnected")); }
};

}  // namespace percs
