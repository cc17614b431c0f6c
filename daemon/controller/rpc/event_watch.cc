#include "daemon/controller/rpc/event_watch.h"

#include "fmt/format.h"
#include "proto/scenario/status.h"

namespace percs {
namespace {

constexpr std::chrono::milliseconds kEventsEvery(20);
constexpr std::size_t kBatchMax = 256;

}  // namespace

EventWatch::EventWatch(Controller* controller, ControlService* service, std::uint64_t after,
                       bool follow)
    : Watch(controller, service), follow_(follow), after_(after) {
  if (const FabricRun* run = controller_->run()) run_ = run->number();
}

void EventWatch::Tick() {
  Look();
  if (!finished_) timer_.Set(kEventsEvery, [this]() PERCS_LOCKED { Tick(); });
}

void EventWatch::Look() {
  if (finished_) return;
  const FabricRun* run = controller_->run();
  if (run && run->number() != run_) {
    run_ = run->number();
    after_ = 0;
  }
  if (writing_) {
    // The batch in flight has events up to after_; the next ones are about to be dropped.
    if (!run || run->log().last() <= after_ + EventLog::kKept) return;
    // It gets the batch in flight when it reads on, and then this.
    return Refuse(absl::ResourceExhaustedError(
        fmt::format("the client reads events too slowly: {} events since the last batch, and only "
                    "{} are kept; watch again after number {} and read faster",
                    run->log().last() - after_, EventLog::kKept, after_)));
  }
  event_.Clear();
  if (run) Fill(*run);
  if (event_.events_size() > 0) {
    return Send();
  }
  if (!follow_) Refuse(absl::OkStatus());
}

void EventWatch::Fill(const FabricRun& run) {
  std::uint64_t lost = 0;
  const auto events = run.log().After(after_, kBatchMax, &lost);
  event_.set_run(run_);
  event_.set_lost(lost);
  for (const FabricEvent& event : events) {
    EventToProto(event, event_.add_events());
    after_ = event.sequence;
  }
}

}  // namespace percs
