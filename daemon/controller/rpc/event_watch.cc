#include "daemon/controller/rpc/event_watch.h"

#include "fmt/format.h"
#include "proto/process/grpc_status.h"

namespace percs {
namespace {

constexpr std::chrono::milliseconds kEventsEvery(20);
constexpr std::size_t kBatchMax = 256;

}  // namespace

EventWatch::EventWatch(Controller* controller, ControlService* service, std::uint64_t after,
                       bool follow)
    : controller_(controller),
      service_(service),
      follow_(follow),
      timer_(&controller->lock()),
      after_(after) {
  controller_->lock().Add();
  service_->AddEventWatch(this);
  if (const FabricRun* run = controller_->run()) run_ = run->number();
}

void EventWatch::Tick() {
  Look();
  if (!finished_) timer_.Set(kEventsEvery, [this] { Tick(); });
}

void EventWatch::Look() {
  if (finished_) return;
  const FabricRun* run = controller_->run();
  if (run && run->number() != run_) {
    run_ = run->number();
    after_ = 0;
  }
  if (writing_) {
    // What is under way holds events up to after_; those that come next are about to be forgotten.
    if (!run || run->log().last() <= after_ + EventLog::kKept) return;
    // It gets the batch that is under way when it reads on, and then this.
    return Refuse(absl::ResourceExhaustedError(
        fmt::format("the client reads events too slowly: {} events since the last batch, and only "
                    "{} are kept; watch again after number {} and read faster",
                    run->log().last() - after_, EventLog::kKept, after_)));
  }
  batch_.Clear();
  if (run) Fill(*run);
  if (batch_.events_size() > 0) {
    writing_ = true;
    return StartWrite(&batch_);
  }
  if (!follow_) Refuse(absl::OkStatus());
}

void EventWatch::Fill(const FabricRun& run) {
  std::uint64_t lost = 0;
  const auto events = run.log().After(after_, kBatchMax, &lost);
  batch_.set_run(run_);
  batch_.set_lost(lost);
  for (const FabricEvent& event : events) {
    v1::FabricEvent* message = batch_.add_events();
    message->set_sequence(event.sequence);
    message->set_at(event.at);
    message->set_kind(event.kind);
    message->set_subject(event.subject);
    message->set_text(event.text);
    after_ = event.sequence;
  }
}

void EventWatch::Refuse(const absl::Status& status) {
  if (finished_) return;
  finished_ = true;
  timer_.Cancel();
  Finish(ToGrpc(status));
}

void EventWatch::OnWriteDone(bool ok) {
  const LockGuard guard(controller_->lock().mutex());
  writing_ = false;
  if (!ok) return Refuse(absl::CancelledError("the client disconnected"));
  Look();
}

void EventWatch::OnCancel() {
  const LockGuard guard(controller_->lock().mutex());
  if (!writing_) Refuse(absl::CancelledError("the client disconnected"));
}

void EventWatch::OnDone() {
  ProcessLock& lock = controller_->lock();
  const LockGuard guard(lock.mutex());
  service_->RemoveEventWatch(this);
  delete this;
  lock.Remove();
}

}  // namespace percs
