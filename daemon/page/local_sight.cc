#include "daemon/page/local_sight.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "daemon/page/processor_time.h"
#include "emulator/management/fault_timeline.h"
#include "proto/scenario/faults.h"
#include "proto/scenario/status.h"

namespace percs {

namespace {

using namespace std::chrono_literals;

constexpr NodeId kAtOnceMin = 128, kAtOnceMax = 4096;

// How many nodes take kLookTime, after `nodes` took `cost`: what hubs count may be in the caches of
// the core, or not.
NodeId NodesInLookTime(NodeId nodes, std::chrono::nanoseconds cost) {
  const double share = std::chrono::duration<double>(LocalSight::kLookTime) / std::max(cost, 1ns);
  return static_cast<NodeId>(std::clamp(nodes * share, 1.0 * kAtOnceMin, 1.0 * kAtOnceMax));
}

}  // namespace

FabricSight LocalSight::Begin(const Fabric& fabric, bool ended) const {
  FabricSight sight;
  sight.run = run_;
  sight.virtual_time = fabric.now();
  sight.run_ended = ended;
  sight.places = links_.places();
  sight.outputs = rows_.outputs();
  return sight;
}

RowSight LocalSight::Row(const Fabric& fabric, int supernode, SeenLinks::SeenStats stats) const {
  RowSight row = rows_.Look(fabric.topology(), fabric.scenario().parameters, supernode, stats,
                            [&](LinkEnd end) { return fabric.link_up(end); });
  row.at = fabric.now();
  return row;
}

FabricSight LocalSight::LookOn(const Fabric& fabric, bool ended) {
  const Topology& topology = fabric.topology();
  if (rows_.supernodes() == 0 || ended) return Look(fabric, ended);
  const auto started = ProcessorTime();
  FabricSight sight = Begin(fabric, ended);
  const NodeId begin = next_;
  // Whole supernodes, then what is no hub.
  const auto per = static_cast<NodeId>(topology.hubs_per_supernode());
  const NodeId end = begin < topology.hubs()
                         ? std::min(begin + std::max(at_once_ / per, 1u) * per, topology.hubs())
                         : std::min(begin + at_once_, topology.nodes());
  std::vector<const NodeStats*> stats;  // asked for once: a hub brings them up to date
  for (; next_ < end; ++next_) {
    passed_.Add(*stats.emplace_back(&fabric.stats(next_)));
    epoch_ = std::max(epoch_, fabric.epoch(next_));
  }
  for (NodeId hub = begin; hub < std::min(end, topology.hubs()); hub += per) {
    sight.rows.push_back(
        Row(fabric, topology.supernode_of(hub), [&](NodeId node) { return stats[node - begin]; }));
  }
  at_once_ = NodesInLookTime(end - begin, ProcessorTime() - started);
  sight.counted = next_ == topology.nodes();
  if (!sight.counted) return sight;
  sight.total = std::exchange(passed_, {});
  next_ = 0;
  return sight;
}

FabricSight LocalSight::Look(const Fabric& fabric, bool ended) const {
  FabricSight sight = Begin(fabric, ended);
  const std::vector<NodeId> nodes = fabric.local_nodes();
  for (int row = 0; row < rows_.supernodes(); ++row) {
    sight.rows.push_back(Row(fabric, row, [&](NodeId node) { return &fabric.stats(node); }));
  }
  for (const NodeId node : nodes) {
    if (rows_.supernodes() > 0) break;
    if (auto ranks = fabric.ranks(node); !ranks.empty())
      sight.ranks.push_back({fabric.topology().NodeName(node), std::move(ranks)});
    if (InFlight in_flight = fabric.in_flight(node); !in_flight.empty())
      sight.in_flight.push_back({fabric.topology().NodeName(node), std::move(in_flight)});
  }
  for (const NodeId node : nodes) sight.total.Add(fabric.stats(node));
  const auto here = [&nodes](NodeId node) {
    return std::binary_search(nodes.begin(), nodes.end(), node);
  };
  const auto stats = [&](NodeId node) { return here(node) ? &fabric.stats(node) : nullptr; };
  sight.hub_names = links_.hubs();
  sight.hubs =
      links_.LookAtHubs(stats, [&](NodeId node) { return fabric.first_rerouted(node).size(); });
  sight.links = links_.Look(fabric.topology(), fabric.scenario().parameters, stats,
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
  if (rows_.supernodes() > 0) {
    reply.set_epoch(std::max(epoch_, fabric.epoch(0)));
  } else {
    for (const NodeId node : fabric.local_nodes())
      reply.set_epoch(std::max(reply.epoch(), fabric.epoch(node)));
  }
  reply.set_clock(v1::CLOCK_BATCH);
  reply.set_packets_delivered(packets_delivered);
  reply.set_unfinished(fabric.work_left().unfinished);
  const std::vector<FaultStatus> faults = fabric.faults()->List();
  ActiveFaultsToProto(faults, topology, &reply);
  if (reply.faults_size() == 0) return reply;
  std::vector<Reroute> reroutes = fabric.reroutes();
  for (const NodeId node : fabric.local_nodes())
    NoteFirstPackets(fabric.first_rerouted(node), &reroutes);
  for (v1::FaultStatus& message : *reply.mutable_faults()) {
    const auto fault = std::find_if(faults.begin(), faults.end(), [&](const FaultStatus& f) {
      return f.number == message.number();
    });
    TimelineToProto(TimelineOf(*fault, reroutes, topology), &message);
  }
  return reply;
}

}  // namespace percs
