#include "proto/scenario/commands.h"

#include <algorithm>

#include "emulator/base/check.h"
#include "fmt/ranges.h"
#include "proto/scenario/blades.h"
#include "proto/scenario/fault_methods.h"
#include "proto/scenario/faults.h"
#include "proto/scenario/route_tables_codec.h"
#include "proto/scenario/trace_codec.h"
#include "proto/scenario/trees.h"
#include "proto/window/endpoint_codec.h"

namespace percs {
namespace {

using google::protobuf::Message;
using Record = v1::JournalRecord;

constexpr std::uint64_t kLeaseMax = 7ull * 24 * 3600 * 1000;  // wall milliseconds

// The reply to fill: the caller's, or an unused one.
template <typename Reply>
class Answer {
 public:
  explicit Answer(Message* reply) : reply_(reply == nullptr ? &unread_ : Cast(reply)) {}
  Reply* operator->() { return reply_; }
  Reply* get() { return reply_; }

 private:
  static Reply* Cast(Message* reply) {
    PERCS_CHECK(reply->GetDescriptor() == Reply::descriptor());
    return static_cast<Reply*>(reply);
  }
  Reply unread_;
  Reply* reply_;
};

// A command that takes effect.
struct Order {
  const Record& record;
  Fabric& fabric;  // all of it, or the part that the scope says
  Time at;
  Message* reply;  // null: no caller
  const Topology& topology() const { return fabric.topology(); }
  FaultService& faults() const { return *fabric.faults(); }  // not for Scope::kHubs
};

absl::Status CheckFault(const v1::Fault& fault, const Fabric& fabric) {
  return BuildFaultSpec(fault, fabric.topology()).status();
}

absl::Status CheckCreateFault(const Record& record, const Fabric& fabric) {
  if (record.lease_wall_ms() <= kLeaseMax) return CheckFault(record.create_fault(), fabric);
  return absl::InvalidArgumentError(
      fmt::format("a lease of {} ms; at most {}", record.lease_wall_ms(), kLeaseMax));
}

absl::Status CheckUpdateFault(const Record& record, const Fabric& fabric) {
  return CheckFault(record.update_fault(), fabric);
}

absl::Status CheckCreateTree(const Record& record, const Fabric& fabric) {
  return BuildTree(record.create_tree(), fabric.topology()).status();
}

absl::Status CheckDeleteTree(const Record& record, const Fabric& fabric) {
  return FindTree(fabric.trees(), record.delete_tree()).status();
}

absl::Status CheckTrace(const Record& record, const Fabric& fabric) {
  return SelectionFromProto(record.trace(), fabric.topology()).status();
}

absl::Status SetFault(const Order& order, const v1::Fault& fault, FaultCommand command) {
  const auto spec = BuildFaultSpec(fault, order.topology());
  if (!spec.ok()) return spec.status();
  return SetFault(order.faults(), command, *spec, order.topology(), order.at,
                  Answer<v1::FaultReply>(order.reply).get());
}

absl::Status CreateFault(const Order& order) {
  return SetFault(order, order.record.create_fault(), &FaultService::Create);
}

absl::Status UpdateFault(const Order& order) {
  return SetFault(order, order.record.update_fault(), &FaultService::Update);
}

absl::Status DeleteFault(const Order& order) {
  return DeleteFault(order.faults(), order.record.delete_fault(), order.topology(), order.at,
                     Answer<v1::FaultReply>(order.reply).get());
}

absl::Status ResetFaults(const Order& order) {
  return ResetFaults(order.faults(), order.at, Answer<v1::ResetFaultsReply>(order.reply).get());
}

absl::Status ResetArbiters(const Order& order) {
  order.faults().ResetArbiters(order.at);
  return absl::OkStatus();
}

absl::Status CreateTree(const Order& order) {
  const auto spec = BuildTree(order.record.create_tree(), order.topology());
  if (!spec.ok()) return spec.status();
  const auto id = order.fabric.CreateTree(*spec, order.at);
  if (id.ok()) Answer<v1::CreateTreeReply>(order.reply)->set_id(*id);
  return id.status();
}

absl::Status DeleteTree(const Order& order) {
  const auto id = FindTree(order.fabric.trees(), order.record.delete_tree());
  if (!id.ok()) return id.status();
  Answer<v1::DeleteTreeReply>(order.reply)->set_id(*id);
  return order.fabric.DeleteTree(*id, order.at);
}

absl::Status LoadRoutes(const Order& order) {
  auto tables = TablesFromProto(order.record.routes().tables(), order.topology().nodes());
  if (!tables.ok()) return tables.status();
  return order.fabric.LoadRoutes(*std::move(tables), order.at).status();
}

absl::Status CheckNotPast(Time at, Time now) {
  if (at >= now) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format("a fault at {} is in the past: virtual time is {}",
                                                FormatTime(at), FormatTime(now)));
}

absl::Status BreakPart(const Order& order) {
  v1::Fault fault = order.record.fault().fault();
  if (order.record.fault().now()) fault.set_at(order.at);
  if (absl::Status status = CheckNotPast(fault.at(), order.at); !status.ok()) return status;
  const auto built = BuildBladeFault(fault, order.topology());
  return built.ok() ? order.fabric.InjectBladeFault(*built) : built.status();
}

absl::Status Trace(const Order& order) {
  const auto selection = SelectionFromProto(order.record.trace(), order.topology());
  if (selection.ok()) order.fabric.Trace(*selection);
  return selection.status();
}

absl::Status Repeat(const Order& order) { return order.fabric.RepeatWorkload(order.at); }

absl::Status Stop(const Order& order) {
  if (order.fabric.faults() != nullptr) order.faults().EndRepeating(order.at);
  order.fabric.StopWorkload(order.at);
  return absl::OkStatus();
}

absl::Status Lose(const Order& order) {
  const v1::LostDaemon& message = order.record.lose();
  if (absl::Status status = CheckNodes(message.nodes(), order.topology()); !status.ok())
    return status;
  const LostHubs lost = LostFromProto(message, order.at);
  for (const FaultAction& action : ActionsOf(lost, order.topology())) {
    if (absl::Status status = order.fabric.Inject(action); !status.ok()) return status;
  }
  order.fabric.Lose(lost);
  return absl::OkStatus();
}

absl::Status Rejoin(const Order& order) {
  const v1::RejoinedDaemon& message = order.record.rejoin();
  const auto rejoined = order.fabric.Readmit(message.loss(), message.name(), order.at);
  if (rejoined.ok()) order.fabric.Rejoin(*rejoined);
  return rejoined.status();
}

absl::Status Sever(const Order& order) {
  const v1::SeveredHubs& message = order.record.sever();
  for (const auto* nodes : {&message.from(), &message.to()}) {
    if (absl::Status status = CheckNodes(*nodes, order.topology()); !status.ok()) return status;
  }
  order.fabric.Sever(SeveredFromProto(message));
  return absl::OkStatus();
}

absl::Status Submit(const Order& order) {
  return IssueSubmission(order.record.endpoint(), order.fabric, order.at, nullptr);
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

namespace {

struct CommandRow {
  CommandScope scope = CommandScope::kNone;
  absl::Status (*act)(const Order&) = nullptr;
  absl::Status (*check)(const Record&, const Fabric&) = nullptr;  // null: no check before
};

#pragma GCC diagnostic push
#pragma GCC diagnostic error "-Wswitch"
// The table of commands. An event without a row does not compile.
CommandRow RowOf(Record::EventCase event) {
  using Scope = CommandScope;
  switch (event) {
    case Record::kCreateFault:
      return {Scope::kManagement, &CreateFault, &CheckCreateFault};
    case Record::kUpdateFault:
      return {Scope::kManagement, &UpdateFault, &CheckUpdateFault};
    case Record::kDeleteFault:
      return {Scope::kManagement, &DeleteFault};
    case Record::kResetFaults:
      return {Scope::kManagement, &ResetFaults};
    case Record::kResetArbiters:
      return {Scope::kManagement, &ResetArbiters};
    case Record::kCreateTree:
      return {Scope::kManagement, &CreateTree, &CheckCreateTree};
    case Record::kDeleteTree:
      return {Scope::kManagement, &DeleteTree, &CheckDeleteTree};
    case Record::kRoutes:
      return {Scope::kManagement, &LoadRoutes};
    case Record::kRepeat:
      return {Scope::kHubs, &Repeat};
    case Record::kTrace:
      return {Scope::kHubs, &Trace, &CheckTrace};
    case Record::kFault:
      return {Scope::kRun, &BreakPart};
    case Record::kStop:
      return {Scope::kRun, &Stop};
    case Record::kLose:
      return {Scope::kRun, &Lose};
    case Record::kRejoin:
      return {Scope::kRun, &Rejoin};
    case Record::kSever:
      return {Scope::kRun, &Sever};
    case Record::kEndpoint:
      return {Scope::kRun, &Submit};
    case Record::kLoadRoutes:  // the name of a payload; kRoutes has the tables
      return {Scope::kRun};
    case Record::kApply:
    case Record::kEnd:
    case Record::kMpiCalls:  // a replay of client/mpi takes them
    case Record::EVENT_NOT_SET:
      return {};
  }
  return {};  // of a newer version
}
#pragma GCC diagnostic pop

}  // namespace

CommandScope ScopeOf(Record::EventCase event) { return RowOf(event).scope; }

absl::Status CheckCommand(const Record& record, const Fabric& fabric) {
  const CommandRow row = RowOf(record.event_case());
  return row.check == nullptr ? absl::OkStatus() : row.check(record, fabric);
}

absl::Status ActOnFabric(const Record& record, Fabric& fabric, Time at, Message* answer) {
  const CommandRow row = RowOf(record.event_case());
  if (row.act == nullptr) return absl::DataLossError("this journal record is not a command");
  return row.act({record, fabric, at, answer});
}

}  // namespace percs
