#include "emulator/sim/hub_pipeline.h"

namespace percs {

void HubPipeline::Run(Time end, bool fetches) {
  if (!fetches) {
    for (Hub* hub : hubs_) hub->Run(end);
    hubs_.clear();
    return;
  }
  const std::size_t hubs = hubs_.size();
  for (std::size_t i = 0; i < hubs + kLead; ++i) {
    for (std::size_t step = 0; step < kSteps; ++step) {
      const std::size_t of = i - step;  // wraps before the first
      if (of < hubs) Fetch(step, *hubs_[of], end, slots_[of % kSlots]);
    }
    if (i >= kLead) hubs_[i - kLead]->Run(end);
  }
  hubs_.clear();
}

void HubPipeline::Fetch(std::size_t step, Hub& hub, Time end, Slot& slot) {
  switch (step) {
    case 0:
      return hub.context().queue.Fetch();
    case 1:
      return hub.context().queue.FetchHeads(end);
    case 2:
      return hub.context().queue.FetchFirsts(end);
    case 3:
      return hub.context().queue.FetchSeconds(end);
    case 4:
      slot.count = 0;
      return hub.ForEachComing(end, [&slot, &hub](PortId port, const Packet* packet) {
        if (slot.count == kComingMax) return;
        FetchPacket(packet);
        hub.isr().router().FetchPointers(port);
        slot.coming[slot.count++] = {packet};
      });
    default:
      break;
  }
  Isr& isr = hub.isr();
  for (std::size_t i = 0; i < slot.count; ++i) {
    Isr::Coming& coming = slot.coming[i];
    switch (step) {
      case 5:
        isr.FetchArrival(coming);
        break;
      case 6:
        isr.FetchDeparture(&coming);
        break;
      default:
        isr.FetchCredits(coming);
        isr.FetchPeer(coming);
        break;
    }
  }
}

}  // namespace percs
