#include "daemon/sync/rejoin_codec.h"

#include <algorithm>
#include <utility>

#include "absl/types/span.h"
#include "fmt/format.h"
#include "proto/process/bytes_of.h"
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
    auto parsed = HubTables::Parse(BytesOf(entry.tables()));
    if (!parsed.ok()) return parsed.status();
    before = std::make_shared<const HubTables>(*std::move(parsed));
  }
  if (before && before->Hash() == entry.hash()) return before;
  return absl::DataLossError(fmt::format("route tables of node {} have hash {:016x}, not {:016x}",
                                         entry.node(), before ? before->Hash() : 0, entry.hash()));
}

// A fault that may still act on a hub that rejoins, from then on.
absl::Status CheckReturning(const FaultAction& action, const RejoinedHubs& rejoined,
                            const Topology& topology, const P7ihParameters& parameters) {
  using Kind = FaultAction::Kind;
  constexpr Kind kNone[] = {Kind::kCorruptNext, Kind::kTableDamaged, Kind::kRetrain, Kind::kRewired,
                            Kind::kResetArbiters};
  const bool acts = std::find(std::begin(kNone), std::end(kNone), action.kind) == std::end(kNone);
  if (!acts || !action.begins || (action.kind == Kind::kLatency && action.value < 0)) {
    return absl::InvalidArgumentError(
        fmt::format("an action of kind {} at port {} of node {}, which is not a rejoining hub",
                    static_cast<int>(action.kind), action.end.port, action.end.node));
  }
  if (action.at < rejoined.at) {
    return absl::InvalidArgumentError(
        fmt::format("an action affects hubs before they rejoin at {}", FormatTime(rejoined.at)));
  }
  return CheckAction(action, topology, parameters);
}

}  // namespace

void RejoinToProto(const RejoinedHubs& rejoined, bool whole, v1::RejoinCommand* message) {
  RejoinedToProto(rejoined, message->mutable_hubs());
  message->set_generation(rejoined.generation);
  message->set_epoch(rejoined.epoch);
  if (!whole) return;
  TablesToProto(rejoined, message);
  for (const FaultAction& action : rejoined.faults) ActionToProto(action, message->add_faults());
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
    absl::Status status = CheckReturning(*action, rejoined, topology, parameters);
    if (!status.ok()) return status;
    rejoined.faults.push_back(*action);
  }
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
