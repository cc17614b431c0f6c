#include "daemon/sync/rejoin_codec.h"

#include <algorithm>
#include <utility>

#include "absl/types/span.h"
#include "fmt/format.h"
#include "proto/scenario/commands.h"
#include "proto/scenario/faults.h"

namespace percs {
namespace {

void TablesToProto(const RejoinedHubs& rejoined, v1::RejoinCommand* message) {
  for (std::size_t i = 0; i < rejoined.nodes.size(); ++i) {
    v1::NodeTables* entry = message->add_tables();
    entry->set_node(rejoined.nodes[i]);
    entry->set_hash(rejoined.tables[i]->Hash());
    if (i == 0 || rejoined.tables[i] != rejoined.tables[i - 1])
      entry->set_tables(rejoined.tables[i]->Serialize());
  }
}

absl::StatusOr<std::shared_ptr<const HubTables>> TablesFromProto(
    const v1::NodeTables& entry, std::shared_ptr<const HubTables> before) {
  if (!entry.tables().empty()) {
    const auto bytes = absl::MakeConstSpan(
        reinterpret_cast<const std::uint8_t*>(entry.tables().data()), entry.tables().size());
    auto parsed = HubTables::Parse(bytes);
    if (!parsed.ok()) return parsed.status();
    before = std::make_shared<const HubTables>(*std::move(parsed));
  }
  if (before && before->Hash() == entry.hash()) return before;
  return absl::DataLossError(fmt::format("route tables of node {} have hash {:016x}, not {:016x}",
                                         entry.node(), before ? before->Hash() : 0, entry.hash()));
}

absl::Status CheckEnd(std::uint32_t node, std::uint32_t port, const Topology& topology) {
  if (node < topology.nodes() && port < kLinkPorts &&
      topology.connected(node, static_cast<PortId>(port))) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      fmt::format("a command for node {} port {}, where no link is plugged in", node, port));
}

// One that may still act on a hub that comes back.
absl::Status CheckAction(const FaultAction& action, const Topology& topology,
                         const P7ihParameters& parameters) {
  using Kind = FaultAction::Kind;
  const std::uint32_t windows =
      kHfisPerHub * static_cast<std::uint32_t>(parameters.windows_per_hfi);
  bool right =
      action.begins && action.rate >= 0 && action.rate <= 1 && action.end.node < topology.nodes();
  switch (action.kind) {
    case Kind::kLinkDown:
    case Kind::kErrorRate:
    case Kind::kLanesLost:
    case Kind::kAlertsMuted:
    case Kind::kLatency:
      right =
          right && CheckEnd(action.end.node, action.end.port, topology).ok() && action.value >= 0;
      break;
    case Kind::kCauDown:
    case Kind::kHfiDown:
    case Kind::kWindowDown:
      right = right && action.end.node < topology.hubs() &&
              action.count < (action.kind == Kind::kHfiDown ? std::uint32_t{kHfisPerHub} : windows);
      break;
    case Kind::kPcieUnplugged:
      right = right && action.count < kPciePorts &&
              topology.DeviceAt(action.end.node, static_cast<int>(action.count));
      break;
    case Kind::kClockDrift:
      right = right && action.end.node < topology.hubs() && topology.spec().clock.has_value();
      break;
    default:
      right = false;
  }
  if (right) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("an action of kind {} at port {} of node {}, which is not a rejoining hub",
                  static_cast<int>(action.kind), action.end.port, action.end.node));
}

absl::Status CheckTimes(const RejoinedHubs& rejoined) {
  const auto early = [at = rejoined.at](const auto& all) {
    return std::any_of(all.begin(), all.end(), [at](const auto& one) { return one.at < at; });
  };
  if (!early(rejoined.faults) && !early(rejoined.link_faults) && !early(rejoined.impairments))
    return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("an action affects hubs before they rejoin at {}", FormatTime(rejoined.at)));
}

}  // namespace

void RejoinToProto(const RejoinedHubs& rejoined, bool whole, v1::RejoinCommand* message) {
  RejoinedToProto(rejoined, message->mutable_hubs());
  message->set_generation(rejoined.generation);
  message->set_epoch(rejoined.epoch);
  if (!whole) return;
  TablesToProto(rejoined, message);
  for (const FaultAction& action : rejoined.faults) ActionToProto(action, message->add_faults());
  for (const LinkFault& fault : rejoined.link_faults) {
    v1::LinkFaultCommand* command = message->add_link_faults();
    command->set_at(fault.at);
    command->set_node(fault.link.node);
    command->set_port(fault.link.port);
    command->set_up(fault.up);
  }
  for (const LinkImpairment& impairment : rejoined.impairments) {
    v1::LinkImpairmentCommand* command = message->add_impairments();
    command->set_at(impairment.at);
    command->set_node(impairment.sender.node);
    command->set_port(impairment.sender.port);
    command->set_kind(static_cast<std::uint32_t>(impairment.kind));
    command->set_flit_error_rate(impairment.flit_error_rate);
    command->set_count(impairment.count);
    command->set_latency(impairment.latency);
  }
}

absl::StatusOr<RejoinedHubs> RejoinFromProto(const v1::RejoinCommand& message,
                                             const Topology& topology,
                                             const P7ihParameters& parameters) {
  if (absl::Status status = CheckNodes(message.hubs().nodes(), topology); !status.ok())
    return status;
  RejoinedHubs rejoined = RejoinedFromProto(message.hubs());
  rejoined.generation = message.generation();
  rejoined.epoch = message.epoch();
  std::shared_ptr<const HubTables> tables;
  for (const v1::NodeTables& entry : message.tables()) {
    auto next = TablesFromProto(entry, tables);
    if (!next.ok()) return next.status();
    rejoined.tables.push_back(tables = *next);
  }
  if (!rejoined.tables.empty() && rejoined.tables.size() != rejoined.nodes.size()) {
    return absl::InvalidArgumentError(fmt::format("route tables for {} hubs, but {} hubs rejoin",
                                                  rejoined.tables.size(), rejoined.nodes.size()));
  }
  for (const v1::FaultActionCommand& command : message.faults()) {
    const auto action = ActionFromProto(command);
    if (!action.ok()) return action.status();
    if (absl::Status status = CheckAction(*action, topology, parameters); !status.ok())
      return status;
    rejoined.faults.push_back(*action);
  }
  for (const v1::LinkFaultCommand& command : message.link_faults()) {
    if (absl::Status status = CheckEnd(command.node(), command.port(), topology); !status.ok())
      return status;
    rejoined.link_faults.push_back(
        {command.at(), {command.node(), static_cast<PortId>(command.port())}, command.up()});
  }
  for (const v1::LinkImpairmentCommand& command : message.impairments()) {
    if (command.port() >= kLinkPorts ||
        command.kind() > static_cast<std::uint32_t>(LinkImpairment::Kind::kLatency)) {
      return absl::InvalidArgumentError(
          fmt::format("an impairment of kind {} at port {}", command.kind(), command.port()));
    }
    LinkImpairment& impairment = rejoined.impairments.emplace_back();
    impairment.at = command.at();
    impairment.sender = {command.node(), static_cast<PortId>(command.port())};
    impairment.kind = static_cast<LinkImpairment::Kind>(command.kind());
    impairment.flit_error_rate = command.flit_error_rate();
    impairment.count = command.count();
    impairment.latency = command.latency();
    if (absl::Status status = CheckImpairment(impairment, topology, parameters); !status.ok())
      return status;
  }
  if (absl::Status status = CheckTimes(rejoined); !status.ok()) return status;
  return rejoined;
}

void LossesToProto(const LossRecord& losses, v1::Configure* message) {
  for (const LostHubs& lost : losses.lost()) {
    v1::LostHubs* entry = message->add_lost();
    entry->set_who(lost.who);
    entry->set_at(lost.at);
    entry->mutable_nodes()->Add(lost.nodes.begin(), lost.nodes.end());
  }
  for (const RejoinedHubs& rejoined : losses.rejoined())
    RejoinedToProto(rejoined, message->add_rejoined());
}

absl::StatusOr<LossRecord> LossesFromProto(const v1::Configure& message, const Topology& topology) {
  LossRecord losses;
  for (const v1::LostHubs& entry : message.lost()) {
    if (absl::Status status = CheckNodes(entry.nodes(), topology); !status.ok()) return status;
    losses.Lose({{entry.nodes().begin(), entry.nodes().end()}, entry.who(), 0, entry.at()},
                topology.nodes());
  }
  for (const v1::RejoinedHubs& entry : message.rejoined()) {
    if (absl::Status status = CheckNodes(entry.nodes(), topology); !status.ok()) return status;
    losses.Rejoin(RejoinedFromProto(entry));
  }
  return losses;
}

}  // namespace percs
