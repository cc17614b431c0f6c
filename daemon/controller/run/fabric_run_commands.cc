// The part of FabricRun that passes commands to network management and to hubs, as their scope says
// (proto/scenario/commands.h).
#include <algorithm>
#include <set>
#include <utility>

#include "daemon/controller/run/fabric_run.h"
#include "emulator/base/check.h"
#include "emulator/base/status.h"
#include "emulator/node/repeated_workload.h"
#include "fmt/format.h"
#include "proto/scenario/blades.h"
#include "proto/scenario/commands.h"
#include "spdlog/spdlog.h"

namespace percs {
namespace {

absl::Status CheckNotBefore(Time boundary, Time at) {
  if (at >= boundary) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format("a fault at {} is in the past: virtual time is {}",
                                                FormatTime(at), FormatTime(boundary)));
}

}  // namespace

FabricRun::CommandRow FabricRun::RowOf(v1::JournalRecord::EventCase event) {
  switch (ScopeOf(event)) {
    case CommandScope::kNone:
      return {};
    case CommandScope::kManagement:
      return {&FabricRun::TakeOnManager, &FabricRun::RepeatOnManager};
    case CommandScope::kHubs:
      return {&FabricRun::TakeOnHubs, nullptr};
    case CommandScope::kRun:
      break;
  }
  switch (event) {
    case v1::JournalRecord::kLoadRoutes:  // readers put kRoutes in its place
      return {&FabricRun::TakeOnManager, nullptr};
    case v1::JournalRecord::kFault:
      return {&FabricRun::TakePartFault, &FabricRun::RepeatPartFault};
    case v1::JournalRecord::kStop:
      return {&FabricRun::TakeStop, &FabricRun::RepeatStop};
    case v1::JournalRecord::kLose:
      return {&FabricRun::TakeLoss, &FabricRun::RepeatLoss};
    case v1::JournalRecord::kRejoin:
      return {&FabricRun::TakeRejoin, &FabricRun::RepeatRejoin};
    case v1::JournalRecord::kSever:
      return {&FabricRun::TakeSever, nullptr};
    case v1::JournalRecord::kEndpoint:
      return {&FabricRun::TakeSubmission, nullptr};
    default:
      PERCS_CHECK(false);  // a command of the scope kRun has its row here
  }
}

bool FabricRun::IsCommand(const v1::JournalRecord& record) {
  return ScopeOf(record.event_case()) != CommandScope::kNone;
}

void FabricRun::Act(v1::JournalRecord record, google::protobuf::Message* answer, TimeDone done) {
  if (absl::Status status = Admit(record); !status.ok()) return done(status);
  Enqueue({std::move(record), std::move(done), answer});
}

absl::Status FabricRun::Admit(const v1::JournalRecord& record) const {
  if (absl::Status status = Retaking(); !status.ok()) return status;
  if (absl::Status status = CheckCommand(record, *manager_); !status.ok()) return status;
  if (!record.has_repeat()) return absl::OkStatus();
  if (phase_ != Phase::kIdle || programs_.expected()) {
    return absl::FailedPreconditionError(fmt::format(
        "run {} is {}; the workload runs again only in a held run (applied with hold) that is idle",
        setup_.number, hold_ ? "not idle yet" : "not held"));
  }
  return CheckRepeatable(setup_.scenario, topology());
}

void FabricRun::LoadRoutes(TableSet tables, v1::JournalRecord record, LoadDone done) {
  if (absl::Status status = Retaking(); !status.ok()) return done(status);
  const auto loaded = std::make_shared<LoadedRoutes>();
  Command command{std::move(record),
                  [done = std::move(done), loaded](const absl::StatusOr<Time>& at) {
                    if (!at.ok()) return done(at.status());
                    done(*loaded);
                  }};
  command.on_manager = [tables = std::move(tables), loaded](Fabric& manager, Time at) {
    return MoveValue(manager.LoadRoutes(tables, at), loaded.get());
  };
  Enqueue(std::move(command));
}

absl::Status FabricRun::Record(const std::list<Command>& commands, Time boundary) {
  if (commands.empty()) return absl::OkStatus();
  PERCS_CHECK(boundary <= master_.next());
  PERCS_CHECK(boundary >= time_.not_before() || commands.front().journalled);
  absl::Status status = commands_.Record(commands, boundary);
  if (status.ok()) time_.NotBefore(boundary);
  return status;
}

void FabricRun::TakeCommands(Time boundary) { Apply(commands_.Take(), boundary); }

void FabricRun::Apply(std::list<Command> commands, Time boundary) {
  if (absl::Status status = Record(commands, boundary); !status.ok()) {
    for (Command& command : commands) command.done(status);
    return;
  }
  for (Command& command : commands) {
    const CommandRow row = RowOf(command.record.event_case());
    PERCS_CHECK(row.take != nullptr);
    command.done((this->*row.take)(command, boundary));
  }
}

void FabricRun::TakeReplay() {
  while (!commands_.replay_ended() && commands_.next_replay() <= master_.next() &&
         phase_ != Phase::kEnded) {
    const v1::JournalRecord record = commands_.TakeReplay();
    commands_.Add(Again(record, /*journalled=*/false));
    TakeCommands(record.at());
  }
}

// A command that was refused then is refused now.
FabricRun::Command FabricRun::Again(const v1::JournalRecord& record, bool journalled) {
  Command command{record, [this](const absl::StatusOr<Time>& at) {
                    if (at.ok()) return;
                    spdlog::info("run {}: replayed command: {}", setup_.number,
                                 std::string(at.status().message()));
                  }};
  command.leased = command.journalled = journalled;
  // No daemon has the requests of programs of another run.
  if (!journalled && record.has_endpoint()) command.record.mutable_endpoint()->clear_process();
  return command;
}

absl::StatusOr<Time> FabricRun::TakeOnManager(const Command& command, Time boundary) {
  const std::string& updated = command.record.update_fault().id();  // "" if it is another command
  const auto before = manager_->faults()->Get(updated);
  const absl::Status status =
      command.on_manager ? command.on_manager(*manager_, boundary)
                         : ActOnFabric(command.record, *manager_, boundary, command.answer);
  if (!status.ok()) return status;
  const auto after = manager_->faults()->Get(updated);
  if (before.ok() && after.ok() && leases_.Renumber(updated, before->number, after->number))
    recovery_.touched = true;
  if (command.leased && command.record.lease_wall_ms() > 0) BeginLease(command.record);
  ReportManager();
  return boundary;
}

void FabricRun::BeginLease(const v1::JournalRecord& record) {
  const auto fault = faults().Get(record.create_fault().id());
  if (!fault.ok()) return;
  Lease(fault->spec.id, fault->number, std::chrono::milliseconds(record.lease_wall_ms()));
}

void FabricRun::RepeatOnManager(const v1::JournalRecord& record) {
  ActOnFabric(record, *manager_, record.at()).IgnoreError();
}

absl::StatusOr<Time> FabricRun::TakePartFault(const Command& command, Time boundary) {
  v1::Fault fault = command.record.fault().fault();
  if (command.record.fault().now()) fault.set_at(boundary);
  if (absl::Status status = CheckNotBefore(boundary, fault.at()); !status.ok()) return status;
  const auto node = AdmitPartFault(fault);
  if (!node.ok()) return node.status();
  for (const std::uint32_t p : OwnersOf({*node})) {
    *pending_[p].add_part_faults() = fault;
    master_.Wake(p, fault.at());
  }
  return fault.at();
}

void FabricRun::RepeatPartFault(const v1::JournalRecord& record) {
  v1::Fault fault = record.fault().fault();
  if (record.fault().now()) fault.set_at(record.at());
  AdmitPartFault(fault).status().IgnoreError();
}

absl::StatusOr<NodeId> FabricRun::AdmitPartFault(const v1::Fault& message) {
  const auto fault = BuildBladeFault(message, topology());
  if (!fault.ok()) return fault.status();
  blade_faults_.push_back(*fault);
  if (absl::Status status = CheckLastBladeFault(blade_faults_, topology()); !status.ok()) {
    blade_faults_.pop_back();
    return status;
  }
  return fault->node;
}

absl::StatusOr<Time> FabricRun::TakeOnHubs(const Command& command, Time boundary) {
  v1::JournalRecord record = command.record;
  record.set_at(boundary);
  ForEachDaemon(boundary, [&](v1::WindowGrant& pending) { *pending.add_commands() = record; });
  return boundary;
}

// Hubs that a lost daemon no longer reached; the loss itself follows in the replay.
absl::StatusOr<Time> FabricRun::TakeSever(const Command& command, Time boundary) {
  for (v1::WindowGrant& pending : pending_) *pending.add_severed() = command.record.sever();
  return boundary;
}

// Nothing holds virtual time from now on.
absl::StatusOr<Time> FabricRun::TakeStop(const Command& command, Time boundary) {
  hold_ = false;
  programs_.Stop();
  FollowHold();
  manager_->faults()->EndRepeating(boundary);
  ReportManager();
  return TakeOnHubs(command, boundary);
}

void FabricRun::RepeatStop(const v1::JournalRecord& record) {
  programs_.Stop();
  manager_->faults()->EndRepeating(record.at());
}

void FabricRun::RepeatLoss(const v1::JournalRecord& record) {
  manager_->Lose(LostFromProto(record.lose(), record.at()));
  losses_.TakeEffect(record.lose());
  if (record.lose().has_process()) streams_.cables.Forget(record.lose().process());
}

void FabricRun::RepeatRejoin(const v1::JournalRecord& record) {
  const auto rejoined =
      manager_->Readmit(record.rejoin().loss(), record.rejoin().name(), record.at());
  if (!rejoined.ok()) return;
  manager_->Rejoin(*rejoined);
  losses_.ReadmitNodes(rejoined->nodes);
  if (record.rejoin().has_process()) losses_.GivePlace(record.rejoin().process());
}

void FabricRun::ForEachDaemon(Time boundary, absl::FunctionRef<void(v1::WindowGrant&)> add) {
  for (std::uint32_t p = 0; p < setup_.daemons(); ++p) {
    if (IsLost(p)) continue;
    add(pending_[p]);
    master_.Wake(p, boundary);
  }
}

std::set<std::uint32_t> FabricRun::OwnersOf(const std::vector<NodeId>& nodes) const {
  std::set<std::uint32_t> owners;
  for (const NodeId node : nodes) {
    const std::uint32_t process = setup_.placement.process_of_node[node];
    if (!IsLost(process)) owners.insert(process);
  }
  return owners;
}

bool FabricRun::CommandsUndelivered() const {
  return std::any_of(pending_.begin(), pending_.end(), [](const v1::WindowGrant& pending) {
    return pending.part_faults_size() > 0 || pending.commands_size() > 0 ||
           pending.endpoints_size() > 0;
  });
}

}  // namespace percs
