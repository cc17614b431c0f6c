#include "emulator/sim/check_scenario.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "emulator/collectives/trees.h"
#include "emulator/management/stall_limit.h"
#include "emulator/node/make_workload.h"
#include "emulator/node/service_agent.h"
#include "emulator/node/triblade_node.h"
#include "emulator/sim/fabric.h"
#include "emulator/sim/fault_injector.h"
#include "emulator/sim/infiniband.h"
#include "emulator/sim/lookahead.h"
#include "fmt/format.h"

namespace percs {

absl::Status CheckMulticastParameters(std::size_t groups, const P7ihParameters& parameters) {
  if (groups == 0) return absl::OkStatus();
  for (const LinkClass c : {LinkClass::kLl, LinkClass::kLr, LinkClass::kD}) {
    if (parameters.link(c).buffer_flits >= kPacketFlitsMax) continue;
    return absl::InvalidArgumentError(fmt::format(
        "multicast packets are replicated from buffers that hold a whole packet, {} flits, but "
        "those of {} links hold {}; write at least {}",
        kPacketFlitsMax, ClassName(c), parameters.link(c).buffer_flits, kPacketFlitsMax));
  }
  return CheckMulticastTableSize(groups, parameters.multicast_table_entries);
}

Placement Placement::Single(NodeId nodes) {
  Placement placement;
  placement.process_of_node.assign(nodes, 0);
  return placement;
}

namespace {

Time LongestWire(const Scenario& scenario) {
  Time longest = 0;
  for (const Cable& cable : scenario.cables) longest = std::max(longest, cable.wire);
  return longest;
}

}  // namespace

absl::Status CheckMachine(const Scenario& scenario, const Topology& topology) {
  // There a link is between ports of any two numbers, and both ends must reckon with one buffer.
  if (topology.graph() && scenario.topology.graph->kind != GraphSpec::Kind::kListed &&
      scenario.parameters.lr != scenario.parameters.ll) {
    return absl::InvalidArgumentError(
        "parameters.lr differs from parameters.ll, but all links of a torus, a HyperX or a fat "
        "tree are of one kind; set ll and leave out lr");
  }
  absl::Status status = CheckMulticastParameters(topology.groups().size(), scenario.parameters);
  if (!status.ok()) return status;
  if (status = CheckWorkload(scenario, topology); !status.ok()) return status;
  if (const auto* script = std::get_if<ScriptedWorkload>(&scenario.workload)) {
    for (const ScriptedPacket& packet : script->packets) {
      if (!packet.route) continue;
      status = CheckReports(*packet.route, scenario.routing.reports());
      if (!status.ok()) return status;
    }
  }
  if (status = CheckTriblades(scenario, topology); !status.ok()) return status;
  if (status = CheckService(scenario.service, topology); !status.ok())
    return absl::InvalidArgumentError(absl::StrCat("service: ", status.message()));
  for (const Cable& cable : scenario.cables) {
    const bool plugged = topology.Peer(cable.link.node, cable.link.port).node != kNoNode;
    if (plugged && cable.wire >= 0 && cable.wire + scenario.parameters.credit_processing > 0)
      continue;
    return absl::InvalidArgumentError(
        fmt::format("a wire of {} for {}: the link must exist, and its credits must take time",
                    FormatTime(cable.wire), topology.LinkName(cable.link)));
  }
  status = CheckTableSize(topology.hubs_per_supernode(), topology.supernodes(),
                          scenario.parameters.route_table_entries);
  for (const RouteSetting& setting : {scenario.routing.fifo, scenario.routing.rdma}) {
    if (status.ok()) status = CheckRouteSetting(setting, topology.supernodes());
  }
  return status;
}

absl::StatusOr<std::vector<std::shared_ptr<const TreePlan>>> PlanTrees(const Scenario& scenario,
                                                                       const Topology& topology) {
  if (scenario.trees.size() > kCauTreesMade) {
    return absl::InvalidArgumentError(
        fmt::format("{} trees; at most {}", scenario.trees.size(), kCauTreesMade));
  }
  std::vector<std::shared_ptr<const TreePlan>> plans;
  std::vector<int> used(topology.hubs());
  for (const TreeSpec& spec : scenario.trees) {
    if (absl::Status status = CheckTree(topology, spec); !status.ok()) return status;
    auto plan = PlanTree(topology, spec, [](NodeId, NodeId) { return true; });
    if (!plan.ok()) return plan.status();
    plan->id = static_cast<CauTreeId>(plans.size());
    for (const TreeVertex& v : plan->vertices) {
      if (++used[v.node] <= kCauTrees) continue;
      return ToStatus({TreeProblem::Code::kFull, CauOperation::kReduce, 0, v.node}, plan->id,
                      topology);
    }
    plans.push_back(std::make_shared<const TreePlan>(*std::move(plan)));
  }
  return plans;
}

std::unique_ptr<FaultService> MakeFaultService(const Scenario& scenario, const Topology& topology,
                                               Time window, EventLog* log) {
  return std::make_unique<FaultService>(topology, scenario.parameters, scenario.seed,
                                        LongestWire(scenario), window, log);
}

absl::Status CreateFaults(const Scenario& scenario, FaultService& faults) {
  for (const FaultSpec& fault : scenario.faults) {
    if (const auto created = faults.Create(fault, 0); !created.ok()) return created.status();
  }
  return CheckStallLimit(scenario.parameters, scenario.topology.infiniband.has_value(),
                         LongestWire(scenario), scenario.faults);
}

bool RunsUntilStopped(const Scenario& scenario) {
  const PatternWorkload* w = scenario.pattern();
  return w && w->count == 0 && w->measure == 0 && scenario.stop_at == 0;
}

absl::Status CheckScenario(const Scenario& given, RunsOn where) {
  const auto topology = Topology::Create(given.topology);
  if (!topology.ok()) return topology.status();
  const Scenario scenario = WithInfiniband(WithCollectiveTree(given));
  absl::Status status = CheckMachine(scenario, *topology);
  if (status.ok()) status = PlanTrees(scenario, *topology).status();
  if (!status.ok()) return status;
  const std::vector<Hub*> no_hubs(topology->nodes());
  const std::vector<EdgeNode*> no_blades(topology->blades());
  FaultInjector injector(*topology, scenario.parameters, no_hubs, no_blades);
  if (status = injector.Inject(scenario.blade_faults); !status.ok()) return status;
  const Lookahead lookahead = FindLookahead(*topology, scenario);
  const auto faults = MakeFaultService(scenario, *topology, lookahead.time, nullptr);
  if (status = CreateFaults(scenario, *faults); !status.ok()) return status;
  if (where == RunsOn::kDaemons) return CheckDistributed(lookahead);
  if (!RunsUntilStopped(scenario)) return absl::OkStatus();
  const char* path = scenario.background ? "workload.background" : "workload.pattern";
  return absl::InvalidArgumentError(fmt::format(
      "this workload runs until it is stopped; limit it with `--set {0}.count=1000`, `--set "
      "{0}.measure=100us` or `--set stop_at=1ms`, or use `percsctl up` and `apply`",
      path));
}

}  // namespace percs
