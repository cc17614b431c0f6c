#include "daemon/controller/rpc/run_watch.h"

#include "emulator/base/status.h"
#include "proto/process/out_of_memory.h"

namespace percs {

RunWatch::RunWatch(Controller* controller, ControlService* service, std::uint64_t run,
                   std::chrono::milliseconds interval)
    : Watch(controller, service), run_(run), interval_(interval) {}

void RunWatch::Tick() {
  Look();
  if (finished_ || last_sent_) return;
  const FabricRun* run = controller_->run();
  if (!writing_ && run && run->number() == run_) WriteProgress(*run);
  timer_.Set(interval_, [this]() PERCS_LOCKED { Tick(); });
}

void RunWatch::Look() {
  if (finished_ || writing_) return;
  if (last_sent_) return Refuse(absl::OkStatus());
  const FabricRun* run = controller_->run();
  if (run && run->number() == run_ && (!run->ended() || controller_->EndIsUnsaved(run_))) return;
  event_.Clear();
  const absl::Status status = WithinMemory("the result", [this]() PERCS_LOCKED {
    return MoveValue(controller_->Result(run_), event_.mutable_result());
  });
  if (!status.ok()) return Refuse(status);
  last_sent_ = true;
  Send();
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
  Send();
}

}  // namespace percs
