#include "daemon/page/local_sight.h"

#include <algorithm>
#include <vector>

#include "emulator/management/fault_timeline.h"
#include "proto/scenario/faults.h"
#include "proto/scenario/status.h"

namespace percs {

FabricSight LocalSight::Look(const Fabric& fabric, bool ended) const {
  FabricSight sight;
  sight.run = run_;
  sight.virtual_time = fabric.now();
  sight.run_ended = ended;
  const std::vector<NodeId> nodes = fabric.local_nodes();
  for (const NodeId node : nodes) sight.total.Add(fabric.stats(node));
  sight.places = links_.places();
  const auto here = [&nodes](NodeId node) {
    return std::binary_search(nodes.begin(), nodes.end(), node);
  };
  sight.links = links_.Look(
      fabric.topology(), fabric.scenario().parameters,
      [&](NodeId node) { return here(node) ? &fabric.stats(node) : nullptr; },
      [&](LinkEnd end) { return !here(end.node) || fabric.link_up(end); });
  return sight;
}

v1::StatusReply LocalSight::Status(const Fabric& fabric, std::uint64_t windows,
                                   std::uint64_t packets_delivered) const {
  v1::StatusReply reply;
  const Topology& topology = fabric.topology();
  reply.set_state(v1::FABRIC_STATE_RUNNING);
  reply.set_scenario(fabric.scenario().name);
  reply.set_run(run_);
  reply.set_nodes(topology.nodes());
  reply.set_blades(topology.blades());
  reply.set_crossbars(topology.crossbars());
  reply.set_virtual_time(fabric.now());
  reply.set_windows(windows);
  reply.set_lookahead(fabric.lookahead());
  reply.set_lookahead_source(fabric.lookahead_source());
  const std::vector<NodeId> nodes = fabric.local_nodes();
  for (const NodeId node : nodes) reply.set_epoch(std::max(reply.epoch(), fabric.epoch(node)));
  reply.set_clock(v1::CLOCK_BATCH);
  reply.set_packets_delivered(packets_delivered);
  reply.set_unfinished(fabric.work_left().unfinished);
  const std::vector<FaultStatus> faults = fabric.faults()->List();
  ActiveFaultsToProto(faults, topology, &reply);
  if (reply.faults_size() == 0) return reply;
  std::vector<Reroute> reroutes = fabric.reroutes();
  for (const NodeId node : nodes) NoteFirstPackets(fabric.first_rerouted(node), &reroutes);
  for (v1::FaultStatus& message : *reply.mutable_faults()) {
    const auto fault = std::find_if(faults.begin(), faults.end(), [&](const FaultStatus& f) {
      return f.number == message.number();
    });
    TimelineToProto(TimelineOf(*fault, reroutes, topology), &message);
  }
  return reply;
}

}  // namespace percs
