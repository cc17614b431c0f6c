#include "emulator/routing/planner.h"

#include "emulator/routing/fabric_plan.h"

namespace percs {

Planner::Planner(const Topology& topology) : topology_(topology) {}
Planner::~Planner() = default;

TableSet Planner::Plan(const Failures& failures) const {
  return FabricPlan(topology_, failures).tables();
}

const TableSet& Planner::Replan(const Failures& failures) {
  if (plan_) {
    plan_->Update(failures);
  } else {
    plan_ = std::make_unique<FabricPlan>(topology_, failures);
  }
  return plan_->tables();
}

}  // namespace percs
