// The Control service's methods for events, health, and pausing virtual time.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "daemon/controller/rpc/control_handlers.h"
#include "daemon/controller/rpc/event_watch.h"
#include "daemon/page/link_status.h"
#include "proto/convert/run_result.h"
#include "proto/scenario/faults.h"

namespace percs {
namespace {

constexpr std::size_t kReroutesListed = 16;

// State of the ports of a hub.
void FillHub(const FabricRun& run, const NodeState& state, v1::HealthReply* reply) {
  const Topology& topology = run.topology();
  bool linked = false, plugged = false;
  for (PortId port = 0; port < kLinkPorts; ++port) {
    if (!topology.connected(state.node, port)) continue;
    plugged = true;
    const bool up = (state.links_up & PortBit(port)) != 0;
    linked = linked || up;
    const LinkEnd end{state.node, port};
    if (!up && LowerEnd(topology, end) == end) reply->add_links_down(topology.LinkName(end));
    const std::uint64_t lost = state.stats.ports[port].lanes_lost;
    if (lost == 0) continue;
    const LinkParameters& link = run.scenario().parameters.link(topology.ClassOfLink(end));
    reply->add_links_short_of_lanes(fmt::format("{} lacks {} of {} + {} lanes",
                                                topology.LinkName(end), lost, link.lanes,
                                                link.spare_lanes));
  }
  if (plugged && !linked) reply->add_hubs_cut_off(topology.NodeName(state.node));
}

void FillTotals(const NodeStats& total, v1::HealthReply* reply) {
  for (int reason = 0; reason < kDropReasons; ++reason) {
    const std::uint64_t packets = total.packets_dropped[static_cast<std::size_t>(reason)];
    if (packets > 0)
      (*reply->mutable_packets_dropped())[DropReasonName(static_cast<DropReason>(reason))] =
          packets;
  }
  for (const PortStats& port : total.ports) reply->set_replays(reply->replays() + port.replays);
  reply->set_packets_resent(total.packets_resent);
}

// State of network management.
void FillManagement(const FabricRun& run, v1::HealthReply* reply) {
  reply->set_epoch(run.epoch());
  const std::vector<Reroute>& reroutes = run.reroutes();
  reply->set_reroutes_count(reroutes.size());
  const std::size_t first =
      reroutes.size() > kReroutesListed ? reroutes.size() - kReroutesListed : 0;
  for (std::size_t i = first; i < reroutes.size(); ++i) {
    RerouteToProto(reroutes[i], run.topology(), reply->add_reroutes());
  }
  if (!reroutes.empty()) reply->set_unreachable_pairs(reroutes.back().unreachable_pairs);
  for (const TreeStatus& tree : run.trees()) {
    if (tree.state == TreeState::kReady || tree.state == TreeState::kDeleted) continue;
    reply->add_trees_not_ready(fmt::format("{}: {}", tree.name, TreeStateName(tree.state)));
  }
  for (const FaultStatus& fault : run.faults().List()) {
    if (fault.phase != FaultPhase::kRecovered)
      FaultToProto(fault, run.topology(), reply->add_faults());
  }
}

}  // namespace

grpc::ServerWriteReactor<v1::EventBatch>* ControlService::Handlers::WatchEvents(
    Context* context, const v1::WatchEventsRequest* request) {
  const LockGuard guard(mutex());
  const absl::Status may = MayWatch(context);
  auto* watch = new EventWatch(controller_, service_, request->after(), request->follow());
  if (may.ok()) {
    watch->Begin();
  } else {
    watch->Refuse(may);
  }
  return watch;
}

Reactor* ControlService::Handlers::GetHealth(Context* context, const v1::GetHealthRequest*,
                                             v1::HealthReply* reply) {
  return ServeRun(context, [&](FabricRun* run, const CallPtr& call) -> absl::Status {
    run->Snapshot(
        {}, call->Then<std::vector<NodeState>>([reply, run](const std::vector<NodeState>& states) {
          reply->set_virtual_time(run->virtual_time());
          NodeStats total;
          for (const NodeState& state : states) {
            total.Add(state.stats);
            FillHub(*run, state, reply);
          }
          FillTotals(total, reply);
          FillManagement(*run, reply);
          reply->set_healthy(reply->links_down().empty() && reply->links_short_of_lanes().empty() &&
                             reply->unreachable_pairs() == 0 && reply->trees_not_ready().empty() &&
                             reply->faults().empty());
        }));
    return absl::OkStatus();
  });
}

Reactor* ControlService::Handlers::Pause(Context* context, const v1::PauseRequest*,
                                         v1::PauseReply* reply) {
  return ServeActive(context, [&](FabricRun* run, const CallPtr&) -> absl::Status {
    reply->set_at(run->Pause());
    reply->set_pace(run->pace().Expected());
    return absl::OkStatus();
  });
}

Reactor* ControlService::Handlers::Resume(Context* context, const v1::ResumeRequest*,
                                          v1::PauseReply* reply) {
  return ServeActive(context, [&](FabricRun* run, const CallPtr&) -> absl::Status {
    reply->set_at(run->Resume());
    reply->set_pace(run->pace().Expected());
    return absl::OkStatus();
  });
}

Reactor* ControlService::Handlers::StepTime(Context* context, const v1::StepTimeRequest* request,
                                            v1::PauseReply* reply) {
  return ServeActive(context, [&](FabricRun* run, const CallPtr&) -> absl::Status {
    if (request->by() <= 0) {
      return absl::InvalidArgumentError(
          fmt::format("a step of {}ps; write one above 0", request->by()));
    }
    reply->set_at(run->StepBy(request->by()));
    reply->set_pace(run->pace().Expected());
    return absl::OkStatus();
  });
}

Reactor* ControlService::Handlers::SetPace(Context* context, const v1::SetPaceRequest* request,
                                           v1::PauseReply* reply) {
  return ServeActive(context, [&](FabricRun* run, const CallPtr&) -> absl::Status {
    const auto at = run->SetPace(request->pace());
    if (!at.ok()) return at.status();
    reply->set_at(*at);
    reply->set_pace(run->pace().Expected());
    return absl::OkStatus();
  });
}

}  // namespace percs
