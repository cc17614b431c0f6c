// The Control service's methods for faults.
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "daemon/controller/rpc/control_handlers.h"
#include "daemon/page/link_status.h"
#include "emulator/management/fault_timeline.h"
#include "proto/scenario/blades.h"
#include "proto/scenario/fault_methods.h"
#include "proto/scenario/faults.h"

namespace percs {
namespace {

constexpr int kNamesListed = 64;

// Jobs that a fault affects: the scenario's workload, if it affects any pair of its hubs.
std::string JobOf(const v1::Scenario& scenario) {
  const v1::Workload& workload = scenario.workload();
  if (workload.kind_case() == v1::Workload::KIND_NOT_SET) return "";
  const auto* field = v1::Workload::descriptor()->FindFieldByNumber(workload.kind_case());
  return fmt::format("workload {} of scenario {}", field->name(), scenario.name());
}

void PreviewToProto(const FaultPreview& preview, const FabricRun& run, v1::FaultPreview* message) {
  const Topology& topology = run.topology();
  const auto list = [&](const std::string& name) {
    if (message->targets_size() < kNamesListed) message->add_targets(name);
  };
  for (const LinkEnd& link : preview.targets.links) list(topology.LinkName(link));
  for (const NodeId hub : preview.targets.hubs) list(topology.NodeName(hub));
  message->set_selected(preview.targets.size());
  message->set_seed(preview.seed);
  message->set_pairs(preview.pairs.size());
  message->set_routes(preview.routes);
  for (const auto& [source, destination] : preview.pairs) {
    if (message->pair_names_size() >= kNamesListed) break;
    message->add_pair_names(
        fmt::format("{} to {}", topology.NodeName(source), topology.NodeName(destination)));
  }
  message->set_pairs_unreachable(preview.unreachable_pairs);
  for (const std::string& tree : preview.trees) message->add_trees(tree);
  for (const NodeId hub : preview.cut_off) message->add_hubs_cut_off(topology.NodeName(hub));
  message->set_windows(preview.windows);
  if (const std::string job = JobOf(run.message()); !job.empty() && !preview.pairs.empty())
    message->add_jobs(job);
  message->set_loses_packets(preview.loses_packets);
}

}  // namespace

absl::Status ControlService::Handlers::Set(FabricRun* run, const CallPtr& call,
                                           const v1::Fault& fault, std::function<void(Time)> told) {
  v1::JournalRecord record;
  *record.mutable_create_fault() = fault;
  const auto created = std::make_shared<v1::FaultReply>();
  run->Act(std::move(record), created.get(),
           call->Then<Time>(
               [created, told = std::move(told)](Time) { told(created->fault().begins_at()); }));
  return absl::OkStatus();
}

Reactor* ControlService::Handlers::InjectLinkFault(Context* context,
                                                   const v1::InjectLinkFaultRequest* request,
                                                   v1::InjectLinkFaultReply* reply) {
  return ServeActive(context, [&](FabricRun* run, const CallPtr& call) -> absl::Status {
    const Topology& topology = run->topology();
    auto link = topology.ParseLink(request->link());
    if (!link.ok()) return link.status();
    const LinkEnd lower = LowerEnd(topology, *link);
    reply->set_link(topology.LinkName(lower));
    reply->set_ends(EndsOf(topology, lower));
    v1::Fault fault;
    if (request->has_at()) fault.set_at(request->at());
    if (request->up()) {
      fault.set_link_up(reply->link());
    } else {
      fault.set_link_down(reply->link());
    }
    return Set(run, call, fault, [reply, number = run->number(), up = request->up()](Time at) {
      reply->set_at(at);
      spdlog::info("run {}: {} changes to {} at {}", number, reply->ends(), up ? "up" : "down",
                   FormatTime(at));
    });
  });
}

Reactor* ControlService::Handlers::InjectFault(Context* context,
                                               const v1::InjectFaultRequest* request,
                                               v1::InjectFaultReply* reply) {
  return ServeActive(context, [&](FabricRun* run, const CallPtr& call) -> absl::Status {
    const Topology& topology = run->topology();
    const auto told = [reply, number = run->number()](Time at) {
      reply->set_at(at);
      spdlog::info("run {}: {} at {}", number, reply->what(), FormatTime(at));
    };
    v1::Fault fault = request->fault();
    if (!request->now() && (fault.at() < 0 || fault.at() >= kNever)) {
      return absl::InvalidArgumentError(fmt::format("at: {}ps is not a virtual time", fault.at()));
    }
    if (IsBladeFault(fault)) {
      const auto part = BuildBladeFault(fault, topology);
      if (!part.ok()) return part.status();
      reply->set_what(DescribeBladeFault(*part, topology));
      v1::JournalRecord record;
      *record.mutable_fault() = *request;
      run->Act(std::move(record), nullptr, call->Then<Time>(told));
      return absl::OkStatus();
    }
    if (request->now()) fault.clear_at();
    const auto spec = BuildFaultSpec(fault, topology);
    if (!spec.ok()) return spec.status();
    if (spec->sets == FaultSets::kNo)
      return absl::InvalidArgumentError("`inject` needs a fault with a name; use CreateFault");
    reply->set_what(DescribeSetting(*spec, topology));
    return Set(run, call, fault, told);
  });
}

Reactor* ControlService::Handlers::BreakStreams(Context* context,
                                                const v1::BreakStreamsRequest* request,
                                                v1::BreakStreamsReply* reply) {
  return Serve(context,
               [&]() PERCS_LOCKED { return controller_->BreakStreams(request->process(), reply); });
}

Reactor* ControlService::Handlers::HoldFault(Context* context, const v1::HoldFaultRequest* request,
                                             v1::HoldFaultReply* reply) {
  return ServeRun(context, [&](FabricRun* run, const CallPtr&) -> absl::Status {
    // not journalled, so that a full disk takes no lease away
    const auto span = run->Hold(request->id());
    if (span.ok()) reply->set_lease_wall_ms(static_cast<std::uint64_t>(span->count()));
    return span.status();
  });
}

Reactor* ControlService::Handlers::ListFaults(Context* context,
                                              const v1::ListFaultsRequest* request,
                                              v1::ListFaultsReply* reply) {
  return ServeKnown(context, [=](FabricRun* run, const CallPtr& call) -> absl::Status {
    if (request->id().empty()) {
      return percs::ListFaults(run->faults(), *request, run->topology(), run->virtual_time(),
                               reply);
    }
    reply->set_virtual_time(run->virtual_time());
    const auto fault = run->faults().Get(request->id());
    if (!fault.ok()) return fault.status();
    // The hubs know its cost.
    run->Snapshot({}, call->Then<std::vector<NodeState>>(
                          [reply, fault = *fault, run](const std::vector<NodeState>& states) {
                            std::vector<Reroute> reroutes = run->reroutes();
                            Losses losses;
                            for (const NodeState& state : states) {
                              NoteFirstPackets(state.first_rerouted, &reroutes);
                              for (const FaultTally& tally : state.tallies) {
                                if (tally.fault == fault.number) losses += tally.losses;
                              }
                            }
                            v1::FaultStatus* message = reply->add_faults();
                            FaultToProto(fault, run->topology(), message);
                            TimelineToProto(TimelineOf(fault, reroutes, run->topology()), message);
                            LossesToProto(losses, message);
                          }));
    return absl::OkStatus();
  });
}

Reactor* ControlService::Handlers::PreviewFault(Context* context,
                                                const v1::PreviewFaultRequest* request,
                                                v1::PreviewFaultReply* reply) {
  return ServeKnown(context, [=](FabricRun* run, const CallPtr&) -> absl::Status {
    const auto spec = BuildFaultSpec(request->fault(), run->topology());
    if (!spec.ok()) return spec.status();
    const auto preview = run->Preview(*spec);
    if (!preview.ok()) return preview.status();
    reply->set_virtual_time(run->virtual_time());
    PreviewToProto(*preview, *run, reply->mutable_preview());
    return absl::OkStatus();
  });
}

}  // namespace percs
