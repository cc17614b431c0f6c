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
// Of a span that has many windows, unless something waits for its end (WindowMaster::Hurry).
constexpr Time kSpanLookaheads = 512;
// A sync of the disk takes milliseconds.
constexpr std::chrono::milliseconds kTogether(1);

}  // namespace

void FabricRun::Step() {
  while (!busy() && going_on()) {
    if (commands_.any_retaken()) {
      Retake();
      if (!commands_.any_retaken()) continue;
      if (busy() || !OpenSpan()) return;
      continue;
    }
    if (!queries_.empty()) SendQueries();
    if (busy()) return;
    if (losses_.any_declared()) {
      TakeLosses();
      time_.ForgetReleased();
      if (losses_.any_declared()) return;  // they could not be journalled
    }
    TakeBack();
    if (phase_ == Phase::kEnded) return;
    TakeReplay();
    // Requests of programs while virtual time is held take effect at that time, at any pace.
    TakeSubmissions(time_.TakeReleased(TimePhase(), clock_.Now()));
    if (commands_.any_waits()) TakeCommands(Now());
    if (!OpenSpan()) return;
  }
}

// One that would wait for a daemon that is missing is refused at once.
void FabricRun::Enqueue(Command command) {
  if (absl::Status status = Waiting(); !status.ok()) return command.done(status);
  commands_.Add(std::move(command));
  Soon();
}

void FabricRun::Soon() {
  Hurry();
  if (!commands_.durable()) return Step();
  if (std::exchange(timers_.soon_set, true)) return;
  timers_.soon.Set(kTogether, [this] {
    timers_.soon_set = false;
    Step();
  });
}

Standing FabricRun::CurrentStanding() const {
  Standing standing;
  standing.next = master_.next();
  standing.next_foreground = master_.next_foreground();
  standing.left = master_.left();
  standing.whole = manager_->losses().lost().empty();
  standing.has_background = setup_.scenario.has_background();
  standing.commands_to_come =
      CommandsUndelivered() || !commands_.replay_ended() || commands_.any_retaken();
  standing.programs_expected = programs_.expected();
  standing.programs_owe = programs_.hold() && !commands_.any_retaken();
  standing.kept_open = hold_;
  standing.faults_wait = OnlyFaultsWait();
  return standing;
}

bool FabricRun::OpenSpan() {
  const Standing standing = CurrentStanding();
  const Time next = standing.next;
  switch (policy_.Decide(standing, [this] { return master_.flits_moved(); })) {
    case WindowDecision::kHeld:
      return phase_ = Phase::kHeld, false;
    case WindowDecision::kDone:
    case WindowDecision::kStopped:
      // The last packet may be there before the credits of its last link: in process they count at
      // once.
      for (const std::uint32_t process : master_.Close()) SendGrant(process);
      if (master_.anyone_running()) return true;
      return Collect(v1::Collect::WHAT_RESULTS), false;
    case WindowDecision::kIdle:
      return phase_ = Phase::kIdle, false;
    case WindowDecision::kFaultsWait:
      time_.HoldForFaults(TimePhase(), clock_.Now());
      return phase_ = Phase::kIdle, false;
    case WindowDecision::kDeadlock:
      return Collect(v1::Collect::WHAT_WAIT_EDGES), false;
    case WindowDecision::kOpen:
      break;
  }
  time_.ReleaseFaults(clock_.Now());
  if (!WindowsLeft()) return false;
  // A pause before commands that took effect was left.
  const std::optional<Time> pause_at = commands_.any_retaken() ? std::nullopt : time_.pause_at();
  if (pause_at && next >= *pause_at) return phase_ = Phase::kPaused, false;
  phase_ = Phase::kRunning;
  Time end = std::min(SpanEnd(next), policy_.next_look());
  if (pause_at) end = std::min(end, *pause_at);
  if (setup_.scenario.stop_at > 0) end = std::min(end, setup_.scenario.stop_at);
  if (!commands_.replay_ended()) end = std::min(end, commands_.next_replay());
  if (commands_.any_retaken()) end = std::min(end, commands_.next_retaken());
  if (time_.pace().paced() &&
      !programs_.stopped()) {  // the rest is not observed, and its timers may be far away
    const auto wait = time_.pace().WaitFor(end, clock_.Now());
    if (wait.count() > 0) return timers_.pace.Set(wait, [this] { Step(); }), false;
  }
  SetLogTime(std::min(end, next + master_.lookahead()));
  TakeFaultActions(end);
  const std::uint64_t windows = master_.windows();
  record_.Opened(end);
  Grant(master_.Open(end));
  ContinueSpan();
  if (master_.windows() / kMeasureEveryWindows != windows / kMeasureEveryWindows) {
    time_.pace().Measure(clock_.Now(), master_.now(), master_.windows());
  }
  return true;
}

// Where programs outside or people follow virtual time, or hear what happens in the order in which
// it does, or where what happens after the last event of the work counts, a span has one window.
Time FabricRun::SpanEnd(Time next) const {
  const Time fault = manager_->faults()->next_time();
  const Time shortest = next + master_.lookahead();
  if (time_.pace().paced() || programs_.expected() || programs_.stopped() ||
      setup_.scenario.has_background() || fault < shortest)
    return shortest;
  return std::min(next + kSpanLookaheads * master_.lookahead(), fault);
}

void FabricRun::Grant(const std::vector<std::uint32_t>& processes) {
  bool manager = false;
  for (const std::uint32_t process : processes) {
    if (process == setup_.daemons()) {
      manager = true;
    } else {
      SendGrant(process);
    }
  }
  if (manager) RunManager();
}

void FabricRun::ContinueSpan() {
  while (going_on() && master_.in_span() && !master_.anyone_running() && !AnswersAwaited()) {
    if (!WindowsLeft()) return;
    record_.Continued();
    Grant(master_.Continue());
  }
  if (!master_.in_span()) recovery_.span_over = true;
}

bool FabricRun::WindowsLeft() {
  if (setup_.windows_limit == 0 || master_.windows() < setup_.windows_limit) return true;
  Fail(absl::ResourceExhaustedError(
      fmt::format("the run is unfinished after its limit of {} windows, at {} of virtual time",
                  setup_.windows_limit, FormatTime(master_.now()))));
  return false;
}

// What was said of virtual time is saved.
void FabricRun::Hurry() {
  if (master_.Hurry()) recovery_.touched = true;
}

void FabricRun::Continue() {
  ContinueSpan();
  if (!busy()) Step();
}

void FabricRun::TakeFaultActions(Time end) {
  if (manager_->faults()->next_time() >= end) return;
  std::vector<FaultAction> due;
  manager_->faults()->Run(end, &due);
  manager_log_.RanFaults(commands_.recorded(), end);
  streams_.cables.Note(due);
  RouteActions(due);
}

void FabricRun::RouteActions(const std::vector<FaultAction>& actions) {
  for (const FaultAction& action : actions) {
    std::set<std::uint32_t> owners{setup_.placement.process_of_node[action.end.node]};
    if (action.at_both_ends()) {
      owners.insert(
          setup_.placement.process_of_node[topology().Peer(action.end.node, action.end.port).node]);
    }
    for (const std::uint32_t process : owners) {
      if (IsLost(process)) continue;
      ActionToProto(action, pending_[process].add_fault_actions());
      master_.Wake(process, action.at);
    }
  }
}

v1::WindowGrant FabricRun::Pending(std::uint32_t process) const {
  v1::WindowGrant grant = pending_[process];
  const Outbox& management = manager_->outbox(process);
  if (!management.empty()) EncodeOutbox(management, grant.mutable_management());
  return grant;
}

void FabricRun::SendGrant(std::uint32_t process) {
  auto message = port_->Prepare(process);
  v1::WindowGrant* grant = message->mutable_grant();
  *grant = Pending(process);
  record_.Granted(/*more=*/grant->ByteSizeLong() > 0);
  ForgetPending(process);
  master_.FillGrant(process, grant);
  for (const v1::FaultActionCommand& command : grant->fault_actions()) {
    const auto action = ActionFromProto(command);
    PERCS_CHECK(action.ok());
    if (const auto peer = streams_.cables.Joins(process, *action))
      *grant->add_joined() = port_->Describe(*peer);
  }
  streams_.batches.OnGrant(process, *grant);
  port_->Send(process, std::move(message));
}

void FabricRun::ForgetPending(std::uint32_t process) {
  pending_[process].Clear();
  manager_->outbox(process).Clear();
}

void FabricRun::RunManager() {
  if (absl::Status status = manager_->Accept(manager_log_.TakeInbox()); !status.ok())
    return Fail(status);
  const Time end = master_.window_end(setup_.daemons());
  SetLogTime(end);
  while (manager_->now() < manager_->WindowReach(end, {})) {
    const Time next = std::max(manager_->NextEventTime(), manager_->now());
    const Time step = next > end - manager_->lookahead() ? end : next + manager_->lookahead();
    manager_->RunWindow(std::min(step, manager_->WindowReach(end, {})));
  }
  manager_log_.RanWindow(commands_.recorded(), manager_->now());
  ReportManager();
}

void FabricRun::ReportManager() {
  v1::WindowReport report;
  for (std::uint32_t process = 0; process < setup_.daemons(); ++process) {
    const Outbox& outbox = manager_->outbox(process);
    if (outbox.empty() || IsLost(process)) continue;
    // Input that a daemon has not been granted yet is announced again, which changes nothing.
    report.add_peers(process);
    report.add_batches(0);
    report.add_carried("");
    report.add_arrivals(outbox.EarliestArrival());
    report.add_credits(kNever);
  }
  report.set_next_event(manager_->NextEventTime());
  report.set_reached(manager_->now());
  const WorkLeft left = manager_->work_left();
  report.set_unfinished(left.unfinished);
  report.set_resident(left.resident_packets);
  if (absl::Status status = master_.OnReport(setup_.daemons(), report); !status.ok()) {
    Fail(status);
  }
}

}  // namespace percs
