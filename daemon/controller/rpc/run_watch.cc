#include "daemon/controller/rpc/run_watch.h"

#include "proto/process/grpc_status.h"
#include "proto/process/out_of_memory.h"

namespace percs {

RunWatch::RunWatch(Controller* controller, ControlService* service, std::uint64_t run,
                   std::chrono::milliseconds interval)
    : controller_(controller),
      service_(service),
      run_(run),
      interval_(interval),
      timer_(&controller->lock()) {
  controller_->lock().Add();
  service_->AddWatch(this);
}

void RunWatch::Begin() { Tick(); }

void RunWatch::Tick() {
  Look();
  if (finished_ || last_sent_) return;
  const FabricRun* run = controller_->run();
  if (!writing_ && run && run->number() == run_) WriteProgress(*run);
  timer_.Set(interval_, [this] { Tick(); });
}

void RunWatch::Look() {
  if (finished_ || writing_) return;
  if (last_sent_) return Refuse(absl::OkStatus());
  const FabricRun* run = controller_->run();
  if (run && run->number() == run_ && !run->ended()) return;
  event_.Clear();
  const absl::Status status = WithinMemory("the result", [this] {
    auto reply = controller_->Result(run_);
    if (reply.ok()) *event_.mutable_result() = *std::move(reply);
    return reply.status();
  });
  if (!status.ok()) return Refuse(status);
  last_sent_ = writing_ = true;
  StartWrite(&event_);
}

void RunWatch::WriteProgress(const FabricRun& run) {
  event_.Clear();
  v1::RunProgress* progress = event_.mutable_progress();
  progress->set_virtual_time(run.virtual_time());
  progress->set_windows(run.master().windows());
  progress->set_packets_delivered(run.master().packets_delivered());
  progress->set_unfinished(run.master().left().unfinished);
  progress->set_wall_seconds(run.wall_seconds());
  progress->set_state(run.state());
  writing_ = true;
  StartWrite(&event_);
}

void RunWatch::Refuse(const absl::Status& status) {
  if (finished_) return;
  finished_ = true;
  timer_.Cancel();
  Finish(ToGrpc(status));
}

void RunWatch::OnWriteDone(bool ok) {
  const LockGuard guard(controller_->lock().mutex());
  writing_ = false;
  if (!ok) return Refuse(absl::CancelledError("the client disconnected"));
  Look();
}

void RunWatch::OnCancel() {
  const LockGuard guard(controller_->lock().mutex());
  if (!writing_) Refuse(absl::CancelledError("the client disconnected"));
}

void RunWatch::OnDone() {
  ProcessLock& lock = controller_->lock();
  const LockGuard guard(lock.mutex());
  service_->RemoveWatch(this);
  delete this;
  lock.Remove();
}

}  // namespace percs
