#include "daemon/controller/rpc/control_service.h"

#include <algorithm>
#include <utility>

#include "daemon/controller/rpc/control_handlers.h"
#include "daemon/controller/rpc/event_watch.h"
#include "daemon/controller/rpc/route_walk.h"
#include "daemon/controller/rpc/run_watch.h"
#include "daemon/page/link_status.h"
#include "fmt/format.h"
#include "proto/convert/counters.h"
#include "proto/convert/topology.h"
#include "proto/process/grpc_status.h"
#include "proto/process/out_of_memory.h"
#include "proto/process/version.h"
#include "proto/scenario/commands.h"
#include "proto/scenario/faults.h"
#include "proto/scenario/route_tables_codec.h"
#include "proto/scenario/trace_codec.h"
#include "proto/scenario/trees.h"
#include "spdlog/spdlog.h"

namespace percs {
namespace {

constexpr std::size_t kRoutesMax = 64;
constexpr std::size_t kWatchesMax = 1024;
constexpr double kWatchIntervalDefault = 0.5, kWatchIntervalMin = 0.02, kWatchIntervalMax = 3600;

absl::StatusOr<std::vector<NodeId>> NamedNode(const Topology& topology, const std::string& name) {
  if (name.empty()) return std::vector<NodeId>();
  auto node = topology.ParseNode(name);
  if (!node.ok()) return node.status();
  return std::vector<NodeId>{*node};
}

// Which packets' routes are asked for.
absl::Status ReadMode(const Topology& topology, const v1::GetRoutesRequest& request,
                      RouteRequest* asked) {
  if (request.mode() == v1::ROUTE_MODE_ADAPTIVE) {
    return absl::InvalidArgumentError(
        "mode: adaptive packets travel as hw_direct or hw_indirect; write one of these");
  }
  RouteSetting setting;
  if (request.mode() != v1::ROUTE_MODE_UNSPECIFIED) {
    setting.mode = static_cast<RouteMode>(request.mode() - 1);
  }
  asked->mode = setting.mode;
  if (request.has_middle_supernode()) {
    if (!IsIndirect(setting.mode) ||
        request.middle_supernode() >= static_cast<std::uint32_t>(topology.supernodes())) {
      return absl::InvalidArgumentError(
          fmt::format("middle_supernode {}: allowed only for indirect modes, from 0 to {}",
                      request.middle_supernode(), topology.supernodes() - 1));
    }
    asked->middle = static_cast<int>(request.middle_supernode());
  }
  return CheckRouteSetting(setting, topology.supernodes());
}

}  // namespace

absl::Status ControlService::Handlers::MayWatch(Context* context) {
  if (absl::Status status = controller_->limit().Admit(context->peer()); !status.ok())
    return status;
  if (service_->leaving()) return absl::UnavailableError("the controller is shutting down");
  if (service_->watches() < kWatchesMax) return absl::OkStatus();
  CountExcess(Excess::kStreams);
  return absl::ResourceExhaustedError(
      fmt::format("{} clients watch already, which is the maximum", kWatchesMax));
}

grpc::ServerWriteReactor<v1::RunEvent>* ControlService::Handlers::WatchRun(
    Context* context, const v1::WatchRunRequest* request) {
  const LockGuard guard(mutex());
  const FabricRun* run = controller_->run();
  const std::uint64_t number = request->run() != 0 ? request->run() : run ? run->number() : 0;
  const double asked = request->wall_interval_seconds();
  const double seconds =
      std::clamp(asked > 0 ? asked : kWatchIntervalDefault, kWatchIntervalMin, kWatchIntervalMax);
  const absl::Status may = MayWatch(context);
  auto* watch = new RunWatch(controller_, service_, number,
                             std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000)));
  if (may.ok()) {
    watch->Begin();
  } else {
    watch->Refuse(may);
  }
  return watch;
}

Reactor* ControlService::Handlers::ListLinks(Context* context, const v1::ListLinksRequest* request,
                                             v1::ListLinksReply* reply) {
  return ServeRun(context, [&](FabricRun* run, const CallPtr& call) -> absl::Status {
    auto links = LinksAt(run->topology(), request->node());
    if (!links.ok()) return links.status();
    std::vector<NodeId> nodes;
    if (!request->node().empty()) nodes = EndsOfAll(run->topology(), *links);
    run->Snapshot(
        nodes, call->Then<std::vector<NodeState>>(
                   [reply, links = *std::move(links), run](const std::vector<NodeState>& states) {
                     percs::ListLinks(
                         run->topology(), run->scenario().parameters, run->virtual_time(), links,
                         [&](NodeId node) { return FindState(states, node); }, reply);
                   }));
    return absl::OkStatus();
  });
}

Reactor* ControlService::Handlers::GetRoutes(Context* context, const v1::GetRoutesRequest* request,
                                             v1::GetRoutesReply* reply) {
  return ServeKnown(context, [=](FabricRun* run, const CallPtr&) -> absl::Status {
    const Topology& topology = run->topology();
    auto source = topology.ParseNode(request->source());
    if (!source.ok()) return source.status();
    auto destination = topology.ParseNode(request->destination());
    if (!destination.ok()) return destination.status();
    reply->set_epoch(run->epoch());
    const TablesOf tables = [run](NodeId node) { return run->tables(node); };
    RouteRequest asked{*source, *destination};
    if (absl::Status status = ReadMode(topology, *request, &asked); !status.ok()) {
      return status;
    }
    for (v1::Route& route : WalkRoutes(topology, tables, asked, kRoutesMax)) {
      *reply->add_routes() = std::move(route);
    }
    return absl::OkStatus();
  });
}

Reactor* ControlService::Handlers::DumpRoutes(Context* context,
                                              const v1::DumpRoutesRequest* request,
                                              v1::DumpRoutesReply* reply) {
  return ServeKnown(context, [=](FabricRun* run, const CallPtr&) -> absl::Status {
    auto named = NamedNode(run->topology(), request->node());
    if (!named.ok()) return named.status();
    reply->set_epoch(run->epoch());
    TopologyToProto(run->topology().spec(), reply->mutable_topology());
    BladesToProto(run->topology().spec(), reply->mutable_blades());
    std::vector<NodeId> nodes = *named;
    for (NodeId node = 0; request->node().empty() && node < run->topology().nodes(); ++node) {
      nodes.push_back(node);
    }
    TablesToProto(
        nodes, [run](NodeId node) { return run->tables(node); }, reply->mutable_tables());
    return absl::OkStatus();
  });
}

Reactor* ControlService::Handlers::LoadRoutes(Context* context,
                                              const v1::LoadRoutesRequest* request,
                                              v1::LoadRoutesReply* reply) {
  return ServeActive(
      context, [&](FabricRun* run, const CallPtr& call) PERCS_LOCKED -> absl::Status {
        auto tables = WithinMemory("the route tables", [&] {
          return TablesFromProto(request->tables(), run->topology().nodes());
        });
        if (!tables.ok()) return tables.status();
        v1::JournalRecord record;
        if (absl::Status status = controller_->KeepRoutes(*request, &record); !status.ok()) {
          return status;
        }
        const std::uint64_t number = run->number();
        run->LoadRoutes(
            *std::move(tables), std::move(record),
            call->Then<LoadedRoutes>([reply, number](const LoadedRoutes& loaded) {
              reply->set_epoch(loaded.epoch);
              reply->set_at(loaded.committed);
              reply->set_hubs_changed(loaded.hubs_changed);
              reply->set_unreachable_pairs(loaded.unreachable_pairs);
              spdlog::info("run {}: route tables of epoch {} were loaded, {} hubs switch at {}",
                           number, loaded.epoch, loaded.hubs_changed, FormatTime(loaded.committed));
            }));
        return absl::OkStatus();
      });
}

Reactor* ControlService::Handlers::GetCounters(Context* context,
                                               const v1::GetCountersRequest* request,
                                               v1::GetCountersReply* reply) {
  return ServeRun(context, [&](FabricRun* run, const CallPtr& call) -> absl::Status {
    auto nodes = NamedNode(run->topology(), request->node());
    if (!nodes.ok()) return nodes.status();
    const bool sum = nodes->empty() && !request->per_node();
    run->Snapshot(*nodes, call->Then<std::vector<NodeState>>(
                              [reply, sum, run](const std::vector<NodeState>& states) {
                                reply->set_virtual_time(run->virtual_time());
                                reply->set_run_ended(run->ended());
                                NodeStats total;
                                for (const NodeState& state : states) {
                                  total.Add(state.stats);
                                  if (sum) continue;
                                  v1::NodeCounters* node = reply->add_nodes();
                                  node->set_node(run->topology().NodeName(state.node));
                                  CountersToProto(state.stats, node->mutable_counters());
                                }
                                if (sum)
                                  CountersToProto(total, reply->add_nodes()->mutable_counters());
                              }));
    return absl::OkStatus();
  });
}

Reactor* ControlService::Handlers::GetTrace(Context* context, const v1::GetTraceRequest*,
                                            v1::GetTraceReply* reply) {
  return ServeRun(context, [&](FabricRun* run, const CallPtr& call) -> absl::Status {
    run->GetTrace(call->Then<std::vector<TracedPacket>>(
        [reply, run](const std::vector<TracedPacket>& packets) {
          reply->set_virtual_time(run->virtual_time());
          reply->set_run_ended(run->ended());
          TracedToProto(packets, run->topology(), reply->mutable_packets());
        }));
    return absl::OkStatus();
  });
}

Reactor* ControlService::Handlers::ListTrees(Context* context, const v1::ListTreesRequest* request,
                                             v1::ListTreesReply* reply) {
  return ServeKnown(context, [=](FabricRun* run, const CallPtr&) -> absl::Status {
    reply->set_virtual_time(run->virtual_time());
    return percs::ListTrees(run->trees(), run->topology(), request->name(), reply->mutable_trees());
  });
}

ControlService::ControlService(Controller* controller)
    : controller_(controller), handlers_(std::make_unique<Handlers>(this, controller)) {}

ControlService::~ControlService() = default;

grpc::Service* ControlService::service() { return handlers_.get(); }

void ControlService::OnRunEnded(std::uint64_t number) {
  for (AnyWatch* watch : watches_) watch->OnRunEnded(number);
}

void ControlService::Leave() {
  leaving_ = true;
  const absl::Status ending = absl::UnavailableError("the controller is shutting down");
  for (AnyWatch* watch : watches_) watch->Refuse(ending);
}

absl::StatusOr<std::unique_ptr<Controller>> StartController(ControllerOptions options) {
  return Controller::Start(std::move(options),
                           [](Controller* controller) -> std::unique_ptr<ControlFront> {
                             return std::make_unique<ControlService>(controller);
                           });
}

}  // namespace percs
