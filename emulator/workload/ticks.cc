#include "emulator/workload/ticks.h"

namespace percs {

std::unique_ptr<HubWorkload> TickWorkload::operator()(HubServices& hub) const {
  return std::make_unique<Ticks>(*this, hub);
}

void Ticks::Start() {
  if (workload_.hubs > 0 && hub_.context().node >= workload_.hubs) return;
  left_ = workload_.count;
  if (left_ == 0) return;
  ++hub_.context().work->unfinished;
  hub_.SetTimer(workload_.period, 0);
}

void Ticks::OnTimer(std::uint64_t) {
  NodeContext& context = hub_.context();
  context.last_event = context.now;  // so that the time of the last tick is in the digest
  if (--left_ == 0) {
    --context.work->unfinished;
  } else {
    hub_.SetTimer(context.now + workload_.period, 0);
  }
}

}  // namespace percs
