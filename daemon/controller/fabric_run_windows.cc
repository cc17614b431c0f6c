// The part of FabricRun that moves virtual time: windows, commands, questions, the end.
#include <algorithm>
#include <set>
#include <utility>

#include "daemon/config/log.h"
#include "daemon/controller/fabric_run.h"
#include "daemon/link/codec.h"
#include "daemon/sync/placement.h"
#include "emulator/base/check.h"
#include "emulator/node/repeated_workload.h"
#include "fmt/format.h"
#include "proto/convert/node_result.h"
#include "proto/scenario/blades.h"
#include "proto/scenario/faults.h"
#include "proto/scenario/impairments.h"
#include "proto/scenario/trace_codec.h"

namespace percs {
namespace {

// Looking at the clock costs more than a small window should.
constexpr std::uint64_t kMeasureEveryWindows = 16;
// A sync of the disk takes milliseconds.
constexpr std::chrono::milliseconds kTogether(1);

}  // namespace

void FabricRun::Step() {
  while (!busy() && going_on()) {
    if (!queries_.empty()) SendQueries();
    if (busy()) return;
    if (!losses_.empty()) {
      TakeLosses();
      released_at_.reset();
      if (!losses_.empty()) return;  // they could not be journalled
    }
    TakeBack();
    if (phase_ == Phase::kEnded) return;
    TakeReplay();
    // What programs ask for while virtual time stands takes effect where it stands, at whatever
    // pace.
    TakeSubmissions(std::exchange(released_at_, std::nullopt).value_or(Now()));
    if (!commands_.empty()) TakeCommands(Now());
    if (!OpenWindow()) return;
  }
}

// One that would wait for a daemon that is missing is refused at once.
void FabricRun::Enqueue(Command command) {
  if (absl::Status status = Waiting(); !status.ok()) return command.Refuse(status);
  commands_.push_back(std::move(command));
  Soon();
}

void FabricRun::Soon() {
  if (!events_.record) return Step();
  if (std::exchange(soon_, true)) return;
  soon_timer_.Set(kTogether, [this] {
    soon_ = false;
    Step();
  });
}

Standing FabricRun::CurrentStanding() const {
  Standing standing;
  standing.next = master_.next();
  standing.next_foreground = master_.next_foreground();
  standing.left = master_.left();
  standing.whole = manager_->losses().lost().empty();
  standing.has_clock = scenario_.topology.clock.has_value();
  standing.commands_to_come = commands_undelivered_ > 0 || !replay_.empty();
  standing.programs_expected = ExpectsPrograms();
  standing.programs_owe = HeldByPrograms();
  standing.kept_open = hold_;
  standing.faults_wait = OnlyFaultsWait();
  return standing;
}

bool FabricRun::OpenWindow() {
  const Standing standing = CurrentStanding();
  const Time next = standing.next;
  switch (policy_.Decide(standing, [this] { return master_.flits_moved(); })) {
    case WindowDecision::kHeld:
      return phase_ = Phase::kHeld, false;
    case WindowDecision::kDone:
    case WindowDecision::kStopped:
      // The last packet may be there before the credits of its last link: in process they count at
      // once.
      for (const int process : master_.Close()) SendGrant(process);
      if (master_.anyone_running()) return true;
      return Collect(v1::Collect::WHAT_RESULTS), false;
    case WindowDecision::kIdle:
      return phase_ = Phase::kIdle, false;
    case WindowDecision::kFaultsWait:
      if (!held_at_) held_at_ = virtual_time();
      return phase_ = Phase::kIdle, false;
    case WindowDecision::kDeadlock:
      return Collect(v1::Collect::WHAT_WAIT_EDGES), false;
    case WindowDecision::kOpen:
      break;
  }
  if (held_at_) pace_.Resume(Clock::now(), *std::exchange(held_at_, std::nullopt));
  if (windows_limit_ > 0 && master_.windows() >= windows_limit_) {
    Fail(absl::ResourceExhaustedError(
        fmt::format("the run is unfinished after its limit of {} windows, at {} of virtual time",
                    windows_limit_, FormatTime(master_.now()))));
    return false;
  }
  if (pause_at_ && next >= *pause_at_) return phase_ = Phase::kPaused, false;
  phase_ = Phase::kRunning;
  Time end = next + master_.lookahead();
  if (pause_at_) end = std::min(end, *pause_at_);
  if (scenario_.stop_at > 0) end = std::min(end, scenario_.stop_at);
  if (!replay_.empty()) end = std::min(end, replay_.front().at());
  if (pace_.paced() &&
      !stopped_) {  // what is left of a stopped run is nobody's to watch, and its timers may be far
    const auto wait = pace_.WaitFor(end, Clock::now());
    if (wait.count() > 0) return pace_timer_.Set(wait, [this] { Step(); }), false;
  }
  SetLogTime(end);
  TakeFaultActions(end);
  bool manager = false;
  for (const int process : master_.Open(end)) {
    if (process == static_cast<int>(daemons_)) {
      manager = true;
    } else {
      SendGrant(process);
    }
  }
  if (manager) RunManager();
  if (master_.windows() % kMeasureEveryWindows == 0) {
    pace_.Measure(Clock::now(), master_.now(), master_.windows());
  }
  return true;
}

void FabricRun::TakeFaultActions(Time end) {
  if (manager_->faults()->next_time() >= end) return;
  std::vector<FaultAction> due;
  manager_->faults()->Run(end, &due);
  if (keeps()) AddStep().set_faults_until(end);
  NoteCables(due);
  RouteActions(due);
}

std::optional<std::uint32_t> FabricRun::Joins(std::uint32_t process,
                                              const FaultAction& action) const {
  if (action.kind != FaultAction::Kind::kRewired || !action.begins ||
      placement_.process_of_node[action.end.node] != process)
    return std::nullopt;
  const std::uint32_t peer = placement_.process_of_node[action.peer.node];
  if (peer == process || SharedChannels(topology(), placement_, process).contains(peer))
    return std::nullopt;
  return peer;
}

void FabricRun::NoteCables(const std::vector<FaultAction>& actions) {
  for (const FaultAction& action : actions) {
    const std::uint32_t process = placement_.process_of_node[action.end.node];
    if (const auto peer = Joins(process, action)) joined_.emplace(process, *peer);
  }
}

void FabricRun::ForgetCables(std::uint32_t process) {
  std::erase_if(joined_, [process](const auto& pair) {
    return pair.first == process || pair.second == process;
  });
}

void FabricRun::RouteActions(const std::vector<FaultAction>& actions) {
  for (const FaultAction& action : actions) {
    std::set<std::uint32_t> owners{placement_.process_of_node[action.end.node]};
    if (action.at_both_ends()) {
      owners.insert(
          placement_.process_of_node[topology().Peer(action.end.node, action.end.port).node]);
    }
    for (const std::uint32_t process : owners) {
      if (master_.lost(static_cast<int>(process))) continue;
      actions_[process].push_back(action);
      master_.Wake(static_cast<int>(process), action.at);
    }
  }
}

void FabricRun::FillCommands(std::uint32_t p, v1::WindowGrant* grant) const {
  const Outbox& management = manager_->outbox(static_cast<int>(p));
  if (!management.empty()) EncodeOutbox(management, grant->mutable_management());
  for (const auto& fault : faults_[p]) *grant->add_faults() = fault;
  for (const auto& fault : other_faults_[p]) *grant->add_other_faults() = fault;
  for (const FaultAction& action : actions_[p]) ActionToProto(action, grant->add_fault_actions());
  for (const auto& trace : traces_[p]) *grant->add_traces() = trace;
  if (stops_[p]) grant->set_stop(true);
  if (repeats_[p]) grant->set_repeat_at(*repeats_[p]);
  for (const auto& operations : operations_[p]) *grant->add_endpoints() = operations;
  for (const auto& severed : severed_[p]) *grant->add_severed() = severed;
  for (const auto& lost : lost_hubs_[p]) *grant->add_lost() = lost;
  for (const auto& rejoined : rejoined_[p]) *grant->add_rejoined() = rejoined;
}

void FabricRun::SendGrant(int process) {
  const auto p = static_cast<std::uint32_t>(process);
  auto message = port_->Prepare(p);
  v1::WindowGrant* grant = message->mutable_grant();
  master_.FillGrant(process, grant);
  FillCommands(p, grant);
  for (const FaultAction& action : actions_[p]) {
    if (const auto peer = Joins(p, action)) *grant->add_joined() = port_->Describe(*peer);
  }
  granted_[p].clear();
  for (int i = 0; i < grant->peers_size(); ++i)
    granted_[p].emplace_back(grant->peers(i), grant->batches(i));
  commands_undelivered_ -= Undelivered(p);
  manager_->outbox(process).Clear();
  faults_[p].clear();
  other_faults_[p].clear();
  actions_[p].clear();
  severed_[p].clear();
  lost_hubs_[p].clear();
  rejoined_[p].clear();
  traces_[p].clear();
  operations_[p].clear();
  stops_[p] = false;
  repeats_[p].reset();
  port_->Send(p, std::move(message));
}

void FabricRun::RunManager() {
  if (absl::Status status = manager_->Accept(std::move(manager_inbox_)); !status.ok()) {
    return Fail(status);
  }
  manager_inbox_.Clear();
  if (keeps()) {
    v1::ManagerStep& step = AddStep();
    step.set_window(master_.now());
    for (std::string& bytes : std::exchange(manager_inbox_bytes_, {}))
      step.add_inbox(std::move(bytes));
  }
  manager_->RunWindow(master_.now());
  ReportManager();
}

void FabricRun::ReportManager() {
  v1::WindowReport report;
  for (std::uint32_t process = 0; process < daemons_; ++process) {
    const Outbox& outbox = manager_->outbox(static_cast<int>(process));
    if (outbox.empty() || master_.lost(static_cast<int>(process))) continue;
    // What a daemon has not been granted yet is announced again, which changes nothing.
    report.add_peers(process);
    report.add_batches(0);
    report.add_arrivals(outbox.EarliestArrival());
  }
  report.set_next_event(manager_->NextEventTime());
  const WorkLeft left = manager_->work_left();
  report.set_unfinished(left.unfinished);
  report.set_resident(left.resident_packets);
  if (absl::Status status = master_.OnReport(static_cast<int>(daemons_), report); !status.ok()) {
    Fail(status);
  }
}

void FabricRun::InjectLinkFault(LinkEnd link, bool up, std::optional<Time> at, TimeDone done) {
  Command command{LinkFault{at.value_or(0), link, up}, std::nullopt, !at.has_value(),
                  std::move(done)};
  v1::InjectLinkFaultRequest* request = command.record.mutable_link_fault();
  request->set_link(topology().LinkName(link));
  request->set_up(up);
  if (at) request->set_at(*at);
  Enqueue(std::move(command));
}

void FabricRun::InjectFault(const v1::Fault& fault, bool now, TimeDone done) {
  Command command{std::nullopt, fault, now, std::move(done)};
  *command.record.mutable_fault()->mutable_fault() = fault;
  command.record.mutable_fault()->set_now(now);
  Enqueue(std::move(command));
}

void FabricRun::Trace(const v1::TraceSelection& selection, TimeDone done) {
  const auto known = SelectionFromProto(selection, topology());
  if (!known.ok()) return done(known.status());
  Command command;
  command.done = std::move(done);
  command.trace = selection;
  *command.record.mutable_trace() = selection;
  Enqueue(std::move(command));
}

void FabricRun::LoadRoutes(TableSet tables, v1::JournalRecord record, LoadDone done) {
  Command command{std::nullopt, std::nullopt, true, nullptr, std::move(tables), std::move(done)};
  command.record = std::move(record);
  Enqueue(std::move(command));
}

void FabricRun::Manage(v1::JournalRecord record, ManagerCommand command, TimeDone done) {
  Command queued{std::nullopt, std::nullopt, true, std::move(done)};
  queued.record = std::move(record);
  queued.on_manager = std::move(command);
  Enqueue(std::move(queued));
}

void FabricRun::Stop(TimeDone done) {
  Command command{std::nullopt, std::nullopt, true, std::move(done)};
  command.record.set_stop(true);
  Enqueue(std::move(command));
}

void FabricRun::Repeat(TimeDone done) {
  if (phase_ != Phase::kIdle || ExpectsPrograms()) {
    return done(absl::FailedPreconditionError(fmt::format(
        "run {} is {}; the workload runs again only in a held run (applied with hold) that is idle",
        number_, hold_ ? "not idle yet" : "not held")));
  }
  if (absl::Status status = CheckRepeatable(scenario_, topology()); !status.ok())
    return done(status);
  Command command{std::nullopt, std::nullopt, true, std::move(done)};
  command.record.set_repeat(true);
  Enqueue(std::move(command));
}

void FabricRun::TakeRepeat(Time boundary) {
  for (std::uint32_t p = 0; p < daemons_; ++p) {
    if (master_.lost(static_cast<int>(p))) continue;
    if (!repeats_[p]) ++commands_undelivered_;
    repeats_[p] = boundary;
    master_.Wake(static_cast<int>(p), boundary);
  }
}

// Before they take effect and are acknowledged: all that take effect at one time are made durable
// at once.
absl::Status FabricRun::Record(const std::list<Command>& commands, Time boundary) {
  if (!events_.record) return absl::OkStatus();
  std::vector<v1::JournalRecord> records;
  for (const Command& command : commands) {
    if (command.record.event_case() == v1::JournalRecord::EVENT_NOT_SET) continue;
    records.push_back(command.record);
    records.back().set_run(number_);
    records.back().set_at(boundary);
  }
  if (records.empty()) return absl::OkStatus();
  absl::Status status = retaking_ ? absl::OkStatus() : events_.record(records);
  if (status.ok()) commands_taken_ += records.size();
  return status;
}

void FabricRun::TakeCommands(Time boundary) {
  std::list<Command> commands = std::exchange(commands_, {});
  if (absl::Status status = Record(commands, boundary); !status.ok()) {
    for (Command& command : commands) command.Refuse(status);
    return;
  }
  for (Command& command : commands) {
    if (command.fault) {
      TakeFault(command, boundary);
      continue;
    }
    if (command.other_fault) {
      TakeOtherFault(command, boundary);
      continue;
    }
    if (command.trace) {
      TakeTrace(command, boundary);
      continue;
    }
    if (command.record.has_lose()) {
      TakeLoss(command.record.lose(), boundary);
      command.done(boundary);
      continue;
    }
    if (command.record.has_rejoin()) {
      const absl::Status status = TakeRejoin(command.record.rejoin(), boundary);
      command.done(status.ok() ? absl::StatusOr<Time>(boundary) : status);
      continue;
    }
    if (command.record.has_repeat()) {
      TakeRepeat(boundary);
      command.done(boundary);
      continue;
    }
    if (command.record.has_endpoint()) {
      TakeSubmission(command.record.endpoint(), boundary);
      command.done(boundary);
      continue;
    }
    if (command.record.has_sever()) {
      for (auto& severed : severed_) severed.push_back(command.record.sever());
      command.done(boundary);
      continue;
    }
    if (command.loaded) {
      auto loaded = manager_->LoadRoutes(std::move(command.tables), boundary);
      if (loaded.ok()) ReportManager();
      command.loaded(std::move(loaded));
      continue;
    }
    if (command.on_manager) {
      const absl::Status status = command.on_manager(*manager_, boundary);
      if (status.ok()) ReportManager();
      command.done(status.ok() ? absl::StatusOr<Time>(boundary) : status);
      continue;
    }
    TakeStop(boundary);
    command.done(boundary);
  }
}

void FabricRun::TakeFault(const Command& command, Time boundary) {
  const LinkFault& fault = *command.fault;
  const Time at = command.now ? boundary : fault.at;
  if (at < boundary) {
    return command.done(absl::InvalidArgumentError(fmt::format(
        "a fault at {} is in the past: virtual time is {}", FormatTime(at), FormatTime(boundary))));
  }
  // For hubs that come back.
  manager_->InjectLinkFault({at, fault.link, fault.up}).IgnoreError();
  const LinkEnd far = topology().Peer(fault.link.node, fault.link.port);
  std::vector<std::uint32_t> owners{placement_.process_of_node[fault.link.node],
                                    placement_.process_of_node[far.node]};
  if (owners[0] == owners[1]) owners.pop_back();
  for (const std::uint32_t p : owners) {
    if (master_.lost(static_cast<int>(p))) continue;
    v1::LinkFaultCommand& message = faults_[p].emplace_back();
    message.set_at(at);
    message.set_node(fault.link.node);
    message.set_port(fault.link.port);
    message.set_up(fault.up);
    Deliver(p, at);
  }
  command.done(at);
}

void FabricRun::TakeOtherFault(const Command& command, Time boundary) {
  v1::Fault message = *command.other_fault;
  if (command.now) message.set_at(boundary);
  if (message.at() < boundary) {
    return command.done(
        absl::InvalidArgumentError(fmt::format("a fault at {} is in the past: virtual time is {}",
                                               FormatTime(message.at()), FormatTime(boundary))));
  }
  const auto nodes = AdmitFault(message);
  if (!nodes.ok()) return command.done(nodes.status());
  std::set<std::uint32_t> owners;
  for (const NodeId node : *nodes) owners.insert(placement_.process_of_node[node]);
  for (const std::uint32_t process : owners) {
    if (master_.lost(static_cast<int>(process))) continue;
    other_faults_[process].push_back(message);
    Deliver(process, message.at());
  }
  command.done(message.at());
}

absl::StatusOr<std::vector<NodeId>> FabricRun::AdmitFault(const v1::Fault& message) {
  if (IsLinkImpairment(message)) {
    const auto impairments = BuildLinkImpairments(message, topology(), scenario_.parameters);
    if (!impairments.ok()) return impairments.status();
    for (const LinkImpairment& impairment : *impairments)
      manager_->InjectLinkImpairment(impairment).IgnoreError();
    const LinkEnd end = impairments->front().sender;
    return std::vector<NodeId>{end.node, topology().Peer(end.node, end.port).node};
  }
  const auto fault = BuildBladeFault(message, topology());
  if (!fault.ok()) return fault.status();
  blade_faults_.push_back(*fault);
  if (absl::Status status = CheckLastBladeFault(blade_faults_, topology()); !status.ok()) {
    blade_faults_.pop_back();
    return status;
  }
  return std::vector<NodeId>{fault->node};
}

void FabricRun::TakeTrace(const Command& command, Time boundary) {
  for (std::uint32_t p = 0; p < daemons_; ++p) {
    if (master_.lost(static_cast<int>(p))) continue;
    if (traces_[p].empty()) ++commands_undelivered_;
    traces_[p].push_back(*command.trace);
    master_.Wake(static_cast<int>(p), boundary);
  }
  command.done(boundary);
}

void FabricRun::Deliver(std::uint32_t process, Time at) {
  if (faults_[process].size() + other_faults_[process].size() == 1) ++commands_undelivered_;
  master_.Wake(static_cast<int>(process), at);
}

}  // namespace percs
