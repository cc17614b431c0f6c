#include "emulator/routing/planner.h"

#include "emulator/routing/clock_plan.h"
#include "emulator/routing/fabric_plan.h"
#include "emulator/routing/graph_multicast.h"
#include "emulator/routing/graph_plan.h"
#include "emulator/routing/multicast_plan.h"

namespace percs {
namespace {

bool HasTrees(const Topology& topology) {
  return !topology.groups().empty() || topology.spec().clock;
}

MulticastPlan MulticastTrees(const Topology& topology, const Failures& failures) {
  if (topology.groups().empty()) return {};
  if (topology.graph() != nullptr)
    return PlanGraphMulticast(topology, LivePorts(topology, failures));
  return PlanMulticast(topology, LiveFabric(topology, failures));
}

// The tables with the trees of multicast groups and of the clock.
TableSet WithTrees(const Topology& topology, const Failures& failures, TableSet tables) {
  if (!HasTrees(topology)) return tables;
  const MulticastPlan multicast = MulticastTrees(topology, failures);
  const std::vector<PortMask> clock = topology.spec().clock
                                          ? PlanClock(topology, LivePorts(topology, failures))
                                          : std::vector<PortMask>(topology.hubs());
  for (NodeId node = 0; node < topology.hubs(); ++node) {
    auto hub = std::make_shared<HubTables>(*tables[node]);
    const auto found = multicast.entries.find(node);
    if (found != multicast.entries.end()) hub->multicast = found->second;
    hub->detours.insert(hub->detours.end(), multicast.detours.begin(), multicast.detours.end());
    hub->multicast.resize(topology.groups().size());
    hub->clock = clock[node];
    tables[node] = hub;
  }
  return tables;
}

// Hubs whose tables come out as in `before` (empty: none) keep those.
TableSet KeepEqual(TableSet planned, const TableSet& before) {
  for (std::size_t node = 0; node < before.size(); ++node) {
    if (before[node]->Hash() == planned[node]->Hash()) planned[node] = before[node];
  }
  return planned;
}

}  // namespace

Planner::Planner(const Topology& topology) : topology_(topology) {}
Planner::~Planner() = default;

TableSet Planner::Plan(const Failures& failures) const {
  return WithTrees(topology_, failures,
                   topology_.graph() != nullptr ? PlanGraph(topology_, failures)
                                                : FabricPlan(topology_, failures).tables());
}

const TableSet& Planner::Replan(const Failures& failures) {
  if (topology_.graph() != nullptr) return tables_ = KeepEqual(Plan(failures), tables_);
  if (plan_) {
    plan_->Update(failures);
  } else {
    plan_ = std::make_unique<FabricPlan>(topology_, failures);
  }
  if (!HasTrees(topology_)) return plan_->tables();
  return tables_ = KeepEqual(WithTrees(topology_, failures, plan_->tables()), tables_);
}

}  // namespace percs
