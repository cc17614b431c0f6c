#include "emulator/node/cell_node.h"

#include <utility>

#include "emulator/base/check.h"
#include "emulator/node/make_workload.h"

namespace percs {
namespace {

BladeConfig ConfigOf(NodeId node, const Scenario& scenario, const Topology& topology) {
  const std::size_t blade = node - topology.hubs();
  return blade < scenario.blades.size() ? scenario.blades[blade] : BladeConfig();
}

}  // namespace

absl::StatusOr<std::unique_ptr<CellNode>> CellNode::Create(NodeId node, const Scenario& scenario,
                                                           const Topology& topology,
                                                           WorkCounters* work,
                                                           const DeliveryObserver* on_delivery) {
  const auto parameters = cell::ParametersOfBlade(ConfigOf(node, scenario, topology).type);
  if (!parameters.ok()) return parameters.status();
  auto blade = cell::Blade::Create(*parameters);
  if (!blade.ok()) return blade.status();
  auto inner = std::unique_ptr<CellNode>(
      new CellNode(node, scenario, topology, work, on_delivery, *std::move(blade)));
  auto workload = MakeHubWorkload(scenario, topology, inner->network_);
  if (!workload.ok()) return workload.status();
  auto port = std::make_unique<BladePort>(inner->network_, *inner->blade_, *std::move(workload));
  inner->port_ = port.get();
  inner->network_.SetWorkload(std::move(port));
  inner->programs_ = std::make_unique<BladePrograms>(
      node, inner->config_.programs, topology, *inner->blade_, *inner->port_,
      inner->network_.context(), [work] { --work->unfinished; });
  return inner;
}

CellNode::CellNode(NodeId node, const Scenario& scenario, const Topology& topology,
                   WorkCounters* work, const DeliveryObserver* on_delivery,
                   std::unique_ptr<cell::Blade> blade)
    : config_(ConfigOf(node, scenario, topology)),
      network_(node, scenario, topology, work, on_delivery),
      blade_(std::move(blade)) {}

void CellNode::Start() {
  network_.Start();
  if (config_.programs.empty()) return;
  ++network_.context().work->unfinished;
  programs_->Start();
}

void CellNode::Run(Time end) {
  NodeContext& context = network_.context();
  for (Time now = next_time(); now < end; now = next_time()) {
    if (blade_->next_time() == now) {
      context.now = now;  // what a program sends, it sends now
      blade_->Run(now + 1);
    }
    if (network_.next_time() == now) network_.Run(now + 1);
  }
  CountBlade();
}

absl::Status CellNode::Inject(const BladeFault& fault) {
  absl::Status status;
  switch (fault.kind) {
    case BladeFault::Kind::kSpeDown:
      status = blade_->FailSpe(fault.unit, fault.at);
      break;
    case BladeFault::Kind::kChipLinkDegraded:
      status = blade_->DegradeChipLink(fault.share, fault.at);
      break;
    case BladeFault::Kind::kRingLost:
      status = blade_->LoseRing(fault.unit, fault.ring, fault.at);
      break;
  }
  if (!status.ok()) return status;
  ++network_.context().work->unfinished;  // a command to come
  blade_->At(fault.at, [this, fault] {
    NodeContext& context = network_.context();
    --context.work->unfinished;
    context.last_event = std::max(context.last_event, fault.at);
    if (fault.kind == BladeFault::Kind::kSpeDown) programs_->OnSpeDown(fault.unit);
  });
  return absl::OkStatus();
}

void CellNode::CountBlade() {
  auto& counters = network_.context().stats.blade;
  std::size_t i = 0;
  blade_->stats().Visit([&](const char*, std::uint64_t value) {
    PERCS_CHECK(i < counters.size());
    counters[i++] = value;
  });
  PERCS_CHECK(i == counters.size());
}

NodeResult CellNode::Result() {
  CountBlade();
  NodeResult result = network_.Result();
  const cell::BladeResult blade = blade_->Result();
  result.programs = programs_->results();
  result.last_event = std::max(result.last_event, blade.last_event);
  DigestStream digest;
  digest.Add(result.digest);
  digest.Add(blade.digest);
  digest.Add(static_cast<std::uint64_t>(blade.last_event));
  result.digest = digest.Finish();
  return result;
}

std::vector<std::string> CellNode::Blocked() {
  std::vector<std::string> blocked = blade_->Result().blocked;
  const NodeContext& context = network_.context();
  for (std::string& text : blocked) text = context.topology->NodeName(context.node) + ": " + text;
  return blocked;
}

}  // namespace percs
