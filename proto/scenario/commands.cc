#include "proto/scenario/commands.h"

#include <algorithm>

#include "fmt/ranges.h"
#include "proto/scenario/blades.h"
#include "proto/scenario/faults.h"
#include "proto/scenario/route_tables_codec.h"
#include "proto/scenario/trace_codec.h"
#include "proto/scenario/trees.h"
#include "proto/window/endpoint_codec.h"

namespace percs {
namespace {

using FaultCommand = absl::StatusOr<FaultStatus> (FaultService::*)(const FaultSpec&, Time);

absl::Status SetFault(const v1::Fault& fault, FaultCommand command, Fabric& manager, Time at) {
  const auto spec = BuildFaultSpec(fault, manager.topology());
  if (!spec.ok()) return spec.status();
  return (manager.faults()->*command)(*spec, at).status();
}

absl::Status CheckNotPast(Time at, Time now) {
  if (at >= now) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format("a fault at {} is in the past: virtual time is {}",
                                                FormatTime(at), FormatTime(now)));
}

absl::Status BreakPart(const v1::InjectFaultRequest& request, Fabric& fabric, Time at) {
  v1::Fault fault = request.fault();
  if (request.now()) fault.set_at(at);
  if (absl::Status status = CheckNotPast(fault.at(), at); !status.ok()) return status;
  const auto built = BuildBladeFault(fault, fabric.topology());
  return built.ok() ? fabric.InjectBladeFault(*built) : built.status();
}

absl::Status LoadTables(const v1::LoadRoutesRequest& request, Fabric& fabric, Time at) {
  auto tables = TablesFromProto(request.tables(), fabric.topology().nodes());
  return tables.ok() ? fabric.LoadRoutes(*std::move(tables), at).status() : tables.status();
}

absl::Status FollowPackets(const v1::TraceSelection& message, Fabric& fabric) {
  const auto selection = SelectionFromProto(message, fabric.topology());
  if (selection.ok()) fabric.Trace(*selection);
  return selection.status();
}

absl::Status Lose(const v1::LostDaemon& message, Fabric& fabric, Time at) {
  if (absl::Status status = CheckNodes(message.nodes(), fabric.topology()); !status.ok())
    return status;
  const LostHubs lost = LostFromProto(message, at);
  for (const FaultAction& action : ActionsOf(lost, fabric.topology())) {
    if (absl::Status status = fabric.Inject(action); !status.ok()) return status;
  }
  fabric.Lose(lost);
  return absl::OkStatus();
}

absl::Status Rejoin(const v1::RejoinedDaemon& message, Fabric& fabric, Time at) {
  const auto rejoined = fabric.Readmit(message.loss(), message.name(), at);
  if (rejoined.ok()) fabric.Rejoin(*rejoined);
  return rejoined.status();
}

absl::Status Sever(const v1::SeveredHubs& message, Fabric& fabric) {
  for (const auto* nodes : {&message.from(), &message.to()}) {
    if (absl::Status status = CheckNodes(*nodes, fabric.topology()); !status.ok()) return status;
  }
  fabric.Sever(SeveredFromProto(message));
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckNodes(const google::protobuf::RepeatedField<std::uint32_t>& nodes,
                        const Topology& topology) {
  for (const std::uint32_t node : nodes) {
    if (node >= topology.nodes()) {
      return absl::InvalidArgumentError(
          fmt::format("a loss names node {}, but there are only {} nodes", node, topology.nodes()));
    }
  }
  return absl::OkStatus();
}

SeveredHubs SeveredFromProto(const v1::SeveredHubs& message) {
  return {{message.from().begin(), message.from().end()},
          {message.to().begin(), message.to().end()},
          message.management()};
}

LostHubs LostFromProto(const v1::LostDaemon& message, Time at) {
  return {{message.nodes().begin(), message.nodes().end()}, message.name(), message.number(), at};
}

void RejoinedToProto(const RejoinedHubs& rejoined, v1::RejoinedHubs* message) {
  message->set_who(rejoined.who);
  message->set_at(rejoined.at);
  message->mutable_nodes()->Add(rejoined.nodes.begin(), rejoined.nodes.end());
  message->set_loss(rejoined.loss);
  message->set_incarnation(rejoined.incarnation);
}

RejoinedHubs RejoinedFromProto(const v1::RejoinedHubs& message) {
  RejoinedHubs rejoined;
  rejoined.nodes.assign(message.nodes().begin(), message.nodes().end());
  rejoined.who = message.who();
  rejoined.at = message.at();
  rejoined.loss = message.loss();
  rejoined.incarnation = message.incarnation();
  return rejoined;
}

std::vector<v1::JournalRecord> ForReplay(const std::vector<v1::JournalRecord>& commands) {
  std::vector<v1::JournalRecord> all;
  for (const v1::JournalRecord& record : commands) {
    if (record.has_lose()) {
      for (const v1::SeveredHubs& severed : record.lose().severed()) {
        v1::JournalRecord& sever = all.emplace_back();
        sever.set_run(record.run());
        sever.set_at(severed.at());
        *sever.mutable_sever() = severed;
      }
    }
    all.push_back(record);
    if (record.has_lose()) all.back().mutable_lose()->clear_process();
    if (record.has_rejoin()) all.back().mutable_rejoin()->clear_process();
    if (record.has_endpoint()) all.back().mutable_endpoint()->clear_process();
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.at() < b.at(); });
  return all;
}

absl::StatusOr<CauTreeId> FindTree(const std::vector<TreeStatus>& trees, const std::string& name) {
  std::vector<std::string> names;
  for (auto tree = trees.rbegin(); tree != trees.rend(); ++tree) {
    if (tree->name == name) return tree->id;
    if (tree->state != TreeState::kDeleted) names.push_back(tree->name);
  }
  return absl::NotFoundError(
      fmt::format("there is no tree \"{}\"; trees: {}", name,
                  names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "))));
}

#pragma GCC diagnostic push
#pragma GCC diagnostic error "-Wswitch"
// An event without a case does not compile.
absl::Status IssueSubmission(const v1::EndpointSubmission& submission, Fabric& fabric, Time at,
                             WindowListener* listener) {
  for (const v1::EndpointOperation& message : submission.operations()) {
    auto operation = OperationFromProto(message);
    if (!operation.ok()) return absl::DataLossError(operation.status().message());
    if (absl::Status status = fabric.Issue(submission.node(), at, *std::move(operation), listener);
        !status.ok()) {
      return status;
    }
  }
  return absl::OkStatus();
}

absl::Status ActOnFabric(const v1::JournalRecord& record, Fabric& fabric, Time at) {
  switch (record.event_case()) {
    case v1::JournalRecord::kCreateFault:
      return SetFault(record.create_fault(), &FaultService::Create, fabric, at);
    case v1::JournalRecord::kUpdateFault:
      return SetFault(record.update_fault(), &FaultService::Update, fabric, at);
    case v1::JournalRecord::kDeleteFault:
      return fabric.faults()->Delete(record.delete_fault(), at);
    case v1::JournalRecord::kResetFaults:
      fabric.faults()->Reset(at);
      return absl::OkStatus();
    case v1::JournalRecord::kResetArbiters:
      fabric.faults()->ResetArbiters(at);
      return absl::OkStatus();
    case v1::JournalRecord::kCreateTree: {
      const auto spec = BuildTree(record.create_tree(), fabric.topology());
      return spec.ok() ? fabric.CreateTree(*spec, at).status() : spec.status();
    }
    case v1::JournalRecord::kDeleteTree: {
      const auto tree = FindTree(fabric.trees(), record.delete_tree());
      return tree.ok() ? fabric.DeleteTree(*tree, at) : tree.status();
    }
    case v1::JournalRecord::kFault:
      return BreakPart(record.fault(), fabric, at);
    case v1::JournalRecord::kRoutes:
      return LoadTables(record.routes(), fabric, at);
    case v1::JournalRecord::kLose:
      return Lose(record.lose(), fabric, at);
    case v1::JournalRecord::kRejoin:
      return Rejoin(record.rejoin(), fabric, at);
    case v1::JournalRecord::kSever:
      return Sever(record.sever(), fabric);
    case v1::JournalRecord::kRepeat:
      return fabric.RepeatWorkload(at);
    case v1::JournalRecord::kTrace:
      return FollowPackets(record.trace(), fabric);
    case v1::JournalRecord::kEndpoint:
      return IssueSubmission(record.endpoint(), fabric, at, nullptr);
    case v1::JournalRecord::kStop:
      fabric.faults()->EndRepeating(at);
      fabric.StopWorkload(at);
      return absl::OkStatus();
    case v1::JournalRecord::kApply:
    case v1::JournalRecord::kEnd:
    case v1::JournalRecord::kMpiCalls:    // a replay of client/mpi takes them
    case v1::JournalRecord::kLoadRoutes:  // the name of a payload; kRoutes has the tables
    case v1::JournalRecord::EVENT_NOT_SET:
      break;
  }
  return absl::DataLossError("this journal record is not a command");
}
#pragma GCC diagnostic pop

}  // namespace percs
