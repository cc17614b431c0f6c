#include "emulator/management/fault_timeline.h"

#include <algorithm>
#include <set>

namespace percs {

FaultTimeline TimelineOf(const FaultStatus& fault, const std::vector<Reroute>& reroutes,
                         const Topology& topology) {
  FaultTimeline timeline;
  if (fault.injected_at == kNever) return timeline;
  std::set<std::pair<NodeId, PortId>> links;
  std::set<NodeId> tables;
  for (const FaultAction& action : ActionsOf(fault.spec, fault.targets, topology)) {
    if (action.kind == FaultAction::Kind::kTableDamaged) tables.insert(action.end.node);
    if (action.of_hub()) continue;
    const LinkEnd far = topology.Peer(action.end.node, action.end.port);
    links.insert(
        std::min(std::pair(action.end.node, action.end.port), std::pair(far.node, far.port)));
  }
  for (const Reroute& reroute : reroutes) {
    const auto hear = [&](const AlertTimes& alert) {
      if (alert.raised < fault.injected_at || alert.raised >= timeline.detected) return;
      timeline = {alert.raised,      alert.alerted,        reroute.planned,
                  reroute.committed, reroute.first_packet, reroute.epoch};
    };
    for (std::size_t i = 0; i < reroute.down.size(); ++i) {
      if (links.count({reroute.down[i].node, reroute.down[i].port}) > 0)
        hear(reroute.down_alerts[i]);
    }
    for (std::size_t i = 0; i < reroute.damaged.size(); ++i) {
      if (tables.count(reroute.damaged[i]) > 0) hear(reroute.damaged_alerts[i]);
    }
  }
  return timeline;
}

}  // namespace percs
