// The part of FabricRun that moves virtual time: windows, commands, questions, the end.
#include <algorithm>
#include <set>
#include <utility>

#include "daemon/config/log.h"
#include "daemon/controller/run/fabric_run.h"
#include "daemon/link/codec.h"
#include "daemon/sync/placement.h"
#include "emulator/base/check.h"
#include "emulator/node/repeated_workload.h"
#include "fmt/format.h"
#include "proto/convert/node_result.h"
#include "proto/scenario/blades.h"
#include "proto/scenario/faults.h"
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
  if (absl::Status status = Waiting(); !status.ok()) return command.done(status);
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
  standing.commands_to_come = CommandsUndelivered() || !replay_.empty();
  standing.programs_expected = programs_.expected();
  standing.programs_owe = programs_.hold();
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
  if (held_at_) pace_.Resume(clock_.Now(), *std::exchange(held_at_, std::nullopt));
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
    const auto wait = pace_.WaitFor(end, clock_.Now());
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
    pace_.Measure(clock_.Now(), master_.now(), master_.windows());
  }
  return true;
}

void FabricRun::TakeFaultActions(Time end) {
  if (manager_->faults()->next_time() >= end) return;
  std::vector<FaultAction> due;
  manager_->faults()->Run(end, &due);
  manager_log_.RanFaults(commands_taken_, end);
  cables_.Note(due);
  RouteActions(due);
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
      ActionToProto(action, pending_[process].add_fault_actions());
      master_.Wake(static_cast<int>(process), action.at);
    }
  }
}

v1::WindowGrant FabricRun::Pending(std::uint32_t process) const {
  v1::WindowGrant grant = pending_[process];
  const Outbox& management = manager_->outbox(static_cast<int>(process));
  if (!management.empty()) EncodeOutbox(management, grant.mutable_management());
  return grant;
}

void FabricRun::SendGrant(int process) {
  const auto p = static_cast<std::uint32_t>(process);
  auto message = port_->Prepare(p);
  v1::WindowGrant* grant = message->mutable_grant();
  *grant = Pending(p);
  ForgetPending(p);
  master_.FillGrant(process, grant);
  for (const v1::FaultActionCommand& command : grant->fault_actions()) {
    const auto action = ActionFromProto(command);
    PERCS_CHECK(action.ok());
    if (const auto peer = cables_.Joins(p, *action)) *grant->add_joined() = port_->Describe(*peer);
  }
  batches_.OnGrant(p, *grant);
  port_->Send(p, std::move(message));
}

void FabricRun::ForgetPending(std::uint32_t process) {
  pending_[process].Clear();
  manager_->outbox(static_cast<int>(process)).Clear();
}

void FabricRun::RunManager() {
  if (absl::Status status = manager_->Accept(manager_log_.TakeInbox()); !status.ok())
    return Fail(status);
  manager_log_.RanWindow(commands_taken_, master_.now());
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

}  // namespace percs
