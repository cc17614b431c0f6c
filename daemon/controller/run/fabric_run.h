// One scenario on the joined daemons, from its configuration to its result: places hubs, opens
// windows, runs network management, passes commands on, collects results.
//
// THREAD: guarded by the process's lock.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "daemon/controller/run/cable_streams.h"
#include "daemon/controller/run/daemon_port.h"
#include "daemon/controller/run/fault_leases.h"
#include "daemon/controller/run/final_answers.h"
#include "daemon/controller/run/manager_log.h"
#include "daemon/controller/run/node_queries.h"
#include "daemon/controller/run/run_commands.h"
#include "daemon/controller/run/run_losses.h"
#include "daemon/controller/run/run_programs.h"
#include "daemon/controller/run/run_rejoin.h"
#include "daemon/controller/run/sent_batches.h"
#include "daemon/controller/run/unreached_peers.h"
#include "daemon/controller/run/virtual_time.h"
#include "daemon/controller/run/window_master.h"
#include "daemon/controller/run/window_record.h"
#include "daemon/metrics/node_state.h"
#include "daemon/stream/process_lock.h"
#include "emulator/management/fault_preview.h"
#include "emulator/sim/fabric.h"
#include "emulator/sim/run.h"
#include "emulator/sim/traced_packet.h"
#include "emulator/sim/window_policy.h"
#include "percs/v1/control.pb.h"
#include "percs/v1/state.pb.h"
#include "percs/v1/sync.pb.h"
#include "proto/scenario/build.h"

namespace percs {

// WIDE: the parts of a run are classes of their own; what one says to another passes here.
class FabricRun {
 public:
  using Clock = std::chrono::steady_clock;
  struct Events {
    std::function<void(const absl::Status&)> configured;  // running, or why not
    std::function<void()> ended;                          // result() is there
    // Makes commands durable that take effect now. An error refuses them all; null: they are not
    // kept.
    RunCommands::Journal record = nullptr;
  };
  using SnapshotDone = NodeQueries::SnapshotDone;
  using RetakenDone = std::function<void(const absl::Status&)>;
  using TimeDone = std::function<void(absl::StatusOr<Time>)>;
  using TraceDone = NodeQueries::TraceDone;
  using LoadDone = std::function<void(absl::StatusOr<LoadedRoutes>)>;

  // A record of a journal that a run takes as a command.
  static bool IsCommand(const v1::JournalRecord& record);
  // INVALID_ARGUMENT for a scenario that cannot be built or dealt out.
  static absl::StatusOr<std::unique_ptr<FabricRun>> Create(std::uint64_t number,
                                                           const v1::ApplyRequest& request,
                                                           std::uint32_t daemons, ProcessLock* lock,
                                                           DaemonPort* port, Events events);

  // Its state between two events, without the steps of network management, which are in
  // manager_log() since Kept(). REQUIRES: `saved` is empty.
  void Save(v1::SavedRun* saved);
  const ManagerLog& manager_log() const { return manager_log_; }
  // Something other than messages to daemons has to be saved.
  bool touched() const { return recovery_.touched || recovery_.span_over; }
  // Whether since Kept(true) nothing has happened but what is in record() and in those before it.
  bool OnlyWindows() const;
  WindowRecord& record() { return record_; }
  // What has happened was saved: as a `whole`, by Save, or as the record, which is empty then.
  void Kept(bool whole);
  // REQUIRES: just created. `commands` are those of the run in the journal; what was saved did not
  // have the last of them if they were journalled and nothing more. TakeUp then continues.
  // DATA_LOSS if they do not fit.
  absl::Status Restore(const v1::SavedRun& saved, const std::vector<v1::ManagerStep>& steps,
                       std::vector<v1::JournalRecord> commands);
  // One step of a record that was kept after it. DATA_LOSS if it does not fit.
  absl::Status Repeat(const v1::SavedStep& step);
  void TakeUp();

  // Sends every daemon its part; windows open when all are ready.
  void Configure();
  void OnMessage(std::uint32_t process, v1::DaemonMessage& message);
  // The process is lost. Survivors continue, if the run is in progress and there are any.
  void Lose(std::uint32_t process, const std::string& name, std::uint64_t incarnation,
            const std::string& why);
  // Whether the previous controller journalled the loss of this daemon and ended before it saved
  // anything else of it.
  bool DeclaredLost(std::uint32_t process, std::uint64_t incarnation) const {
    return losses_.WasJournalled(process, incarnation);
  }
  // A daemon may have joined in the place of a lost one: admits them, one at a time.
  void TakeBack();
  // It has to say something.
  bool Awaits(std::uint32_t process) const;
  // OK, or UNAVAILABLE: which missing daemon virtual time or an answer waits for.
  absl::Status Waiting() const;
  // Answers calls that would wait for missing daemons, and ends a run that cannot begin because
  // daemons do not reach each other. To be called from time to time.
  void RefuseWaiting();
  // OK, or why virtual time is held: a loss cannot be journalled.
  const absl::Status& not_journalled() const { return losses_.not_journalled(); }
  // Another controller continues it: calls that wait for an answer get `why`, and nothing is done
  // from now on.
  void HandOver(const absl::Status& why);
  // Ends the run with an error, and the daemons drop it. A run that has ended keeps its result, but
  // its hubs can no longer be queried.
  void Fail(const absl::Status& why);

  void Snapshot(std::vector<NodeId> nodes, SnapshotDone done);
  // Of all nodes, without holding virtual time. `sent` is called at the virtual time of the answer.
  void Look(SnapshotDone done, std::function<void()> sent);
  // The traces of all packets followed so far.
  void GetTrace(TraceDone done);
  // Calls back at once, or when the commands that an earlier controller journalled have taken
  // effect again: until then network management does not know what was acknowledged. UNAVAILABLE: a
  // daemon that this waits for is missing.
  void WhenRetaken(RetakenDone done);
  // Calls back when the tables have been proven and their install has begun, or with the witness.
  void LoadRoutes(TableSet tables, v1::JournalRecord record, LoadDone done);
  // A command, at the start of the next window. Calls back with the virtual time of its effect,
  // with what CheckCommand and ActOnFabric say against it, or with FAILED_PRECONDITION: the
  // workload runs again only when everything is done and the run is held. `answer`: a reply of the
  // command's method, which is filled and has to stay until then; null: no caller.
  void Act(v1::JournalRecord record, google::protobuf::Message* answer, TimeDone done);
  const RunPrograms::Counts& programs() const { return programs_.counts(); }
  // Virtual time pauses now or later, or resumes. Returns where. Commands are still
  // taken.
  Time Pause();
  Time StepBy(Time by);
  Time Resume();
  // How fast virtual time may pass from now on, in picoseconds per wall second; 0: no limit.
  // Returns where it is. INVALID_ARGUMENT below 0; FAILED_PRECONDITION if the clock is batch.
  absl::StatusOr<Time> SetPace(Time pace);
  // Fault `number` of this name is deleted when its lease is not renewed for `span` of wall time.
  // Hold returns the span.
  void Lease(const std::string& id, std::uint32_t number, std::chrono::milliseconds span);
  absl::StatusOr<std::chrono::milliseconds> Hold(const std::string& id);

  v1::FabricState state() const;
  bool ended() const { return result_.has_value(); }
  // REQUIRES: ended().
  const absl::StatusOr<RunResult>& result() const { return *result_; }
  std::uint64_t number() const { return setup_.number; }
  const Scenario& scenario() const { return setup_.scenario; }
  const v1::Scenario& message() const { return setup_.message; }
  const Topology& topology() const { return manager_->topology(); }
  const Placement& placement() const { return setup_.placement; }
  const WindowMaster& master() const { return master_; }
  const PaceKeeper& pace() const { return time_.pace(); }
  // For people: never decreases.
  Time virtual_time() const;
  double wall_seconds() const { return time_.WallSeconds(clock_.Now()); }
  double behind_seconds() const { return pace().BehindSeconds(clock_.Now(), virtual_time()); }
  std::string lookahead_source() const { return manager_->lookahead_source(); }
  Epoch epoch() const;
  std::shared_ptr<const HubTables> tables(NodeId node) const { return manager_->tables(node); }
  const std::vector<TreeStatus>& trees() const { return manager_->trees(); }
  const FaultService& faults() const { return *manager_->faults(); }
  const EventLog& log() const { return manager_->events(); }
  // The last rejoin of the hubs of a process; null if there was none.
  const RejoinedHubs* Rejoined(std::uint32_t process) const;
  const std::vector<Reroute>& reroutes() const { return manager_->reroutes(); }
  // Preview of a fault. Errors as those of creating it.
  absl::StatusOr<FaultPreview> Preview(const FaultSpec& spec) const;

 private:
  // kHeld: by programs.
  enum class Phase {
    kConfiguring,
    kRunning,
    kIdle,
    kPaused,
    kHeld,
    kCollecting,
    kDeadlocked,
    kEnded
  };
  bool going_on() const {
    return phase_ == Phase::kRunning || phase_ == Phase::kIdle || phase_ == Phase::kPaused ||
           phase_ == Phase::kHeld;
  }
  // The scenario applied.
  struct Setup {
    std::uint64_t number = 0;
    v1::Scenario message;
    Scenario scenario;
    Placement placement;
    std::uint64_t windows_limit = 0;
    std::optional<v1::TraceSelection> trace;  // from the start
    std::uint32_t daemons() const { return static_cast<std::uint32_t>(placement.manager_process); }
  };
  using Loss = RunLosses::Loss;
  using Command = RunCommands::Command;
  struct Timers {
    explicit Timers(ProcessLock* lock) : pace(lock), lease(lock), soon(lock), rejoin(lock) {}
    void Cancel() {
      for (Timer* timer : {&pace, &lease, &soon, &rejoin}) timer->Cancel();
    }
    Timer pace, lease, soon;
    Timer rejoin;  // after a rejoin that the journal did not take
    bool soon_set = false;
  };
  // Between daemons.
  struct Streams {
    UnreachedPeers unreached;
    CableStreams cables;
    SentBatches batches;
  };
  // State for controllers that take over.
  struct Recovery {
    std::uint64_t controllers = 0;                                // before this one
    v1::SavedRun::Phase phase = v1::SavedRun::PHASE_UNSPECIFIED;  // of the one before, at its end
    bool touched = false;
    bool span_over = false;
    // Of what was saved last as a whole: all but what steps of the record change, serialized; and
    // WindowMaster::other_changes.
    std::optional<std::string> rest = std::nullopt;
    std::optional<std::string> saving = std::nullopt;  // `rest` once that is saved
    std::uint64_t other_changes = 0;
  };
  // What a command does, by its event in the journal.
  struct CommandRow {
    // Takes effect at a boundary, and returns its time; an error refuses it. Null: no command.
    absl::StatusOr<Time> (FabricRun::*take)(const Command& command, Time boundary) = nullptr;
    // Repeats a command in a controller that takes over: network management is not saved.
    void (FabricRun::*repeat)(const v1::JournalRecord& record) = nullptr;
  };
  static CommandRow RowOf(v1::JournalRecord::EventCase event);

  FabricRun(std::uint64_t number, const v1::ApplyRequest& request, Scenario scenario,
            std::unique_ptr<Fabric> manager, Placement placement, ProcessLock* lock,
            DaemonPort* port, Events events);

  void SendConfigure(std::uint32_t process);
  void OnReady(std::uint32_t process, const v1::Ready& ready);
  void OnFailure(std::uint32_t process, const v1::Failure& failure);
  // Of a query; an error if it cannot be read.
  void OnAnswer(const absl::Status& read);
  void OnReport(std::uint32_t process, v1::DaemonMessage& message);
  absl::Status TakeReport(std::uint32_t process, const v1::WindowReport& report);
  void SaveRest(v1::SavedRun* saved) const;
  void Start();

  // Continues as far as possible: until a daemon has to answer, the pace holds, or the end.
  void Step();
  // Something that virtual time waited for has come: the span continues, or Step.
  void Continue();
  // With the next window, if its last one is over.
  void ContinueSpan();
  // A command, a question or a loss waits for the end of the span.
  void Hurry();
  // Fails the run if it has had as many as it may have.
  bool WindowsLeft();
  // A command has arrived: Step, but if commands are made durable, after a moment, so that commands
  // that arrive together are synced together.
  void Soon();
  // Virtual time or an answer waits for it.
  bool HeldBy(std::uint32_t process) const;
  absl::Status WaitsFor(std::uint32_t process) const;
  // OK, or UNAVAILABLE: which daemons have no stream to which.
  absl::Status Apart() const;
  absl::Status Admit(const v1::JournalRecord& record) const;
  void BeginLease(const v1::JournalRecord& record);
  // Makes it take effect at the end of the window.
  void Enqueue(Command command);
  void Ask(NodeQueries::Query query);
  void SendQueries();
  bool IsLost(std::uint32_t process) const { return master_.IsLost(process); }
  bool AnswersAwaited() const;
  bool busy() const { return master_.in_span() || master_.anyone_running() || AnswersAwaited(); }
  // Those that wait.
  void TakeCommands(Time boundary);
  // Those of an earlier run that are due.
  void TakeReplay();
  // A command of a journal, as if it had been requested now.
  Command Again(const v1::JournalRecord& record, bool journalled);
  void Apply(std::list<Command> commands, Time boundary);
  absl::Status Record(const std::list<Command>& commands, Time boundary);
  void EndLeases();
  // Rows of commands. Each adds to what the daemons it concerns get with their next grants.
  absl::StatusOr<Time> TakeOnManager(const Command& command, Time boundary);
  absl::StatusOr<Time> TakePartFault(const Command& command, Time boundary);
  absl::StatusOr<Time> TakeOnHubs(const Command& command, Time boundary);
  absl::StatusOr<Time> TakeSever(const Command& command, Time boundary);
  absl::StatusOr<Time> TakeStop(const Command& command, Time boundary);
  absl::StatusOr<Time> TakeLoss(const Command& command, Time boundary);
  absl::StatusOr<Time> TakeRejoin(const Command& command, Time boundary);
  absl::StatusOr<Time> TakeSubmission(const Command& command, Time boundary);
  void RepeatOnManager(const v1::JournalRecord& record);
  void RepeatPartFault(const v1::JournalRecord& record);
  void RepeatStop(const v1::JournalRecord& record);
  void RepeatLoss(const v1::JournalRecord& record);
  void RepeatRejoin(const v1::JournalRecord& record);
  // The blade.
  absl::StatusOr<NodeId> AdmitPartFault(const v1::Fault& fault);
  // Adds to what each daemon that is not lost gets, and has it run from `boundary` on.
  void ForEachDaemon(Time boundary, absl::FunctionRef<void(v1::WindowGrant&)> add);
  // Daemons that are not lost and have one of these.
  std::set<std::uint32_t> OwnersOf(const std::vector<NodeId>& nodes) const;
  // Begins a span. False if there is none to begin now.
  bool OpenSpan();
  // How far the span that begins with the event at `next` may reach.
  Time SpanEnd(Time next) const;
  // Of a window: they get their grants.
  void Grant(const std::vector<std::uint32_t>& processes);
  Standing CurrentStanding() const;
  void SendGrant(std::uint32_t process);
  // Input of commands and network management for the process's next grant.
  v1::WindowGrant Pending(std::uint32_t process) const;
  void ForgetPending(std::uint32_t process);
  bool CommandsUndelivered() const;
  absl::Status RestoreCommands(std::uint32_t process, const v1::WindowGrant& pending);
  absl::Status RepeatManager(const v1::SavedRun& saved, const std::vector<v1::ManagerStep>& steps,
                             const std::vector<v1::JournalRecord>& commands);
  // Commands that are in the journal and not in what was saved, up to the next event.
  void Retake();
  // No window waits for daemons whose loss will be retaken.
  void LeaveOutRetaken();
  // OK, or UNAVAILABLE while there are such commands.
  absl::Status Retaking() const;
  // Gives the daemons the actions of faults before `end`.
  void TakeFaultActions(Time end);
  void RunManager();
  void ReportManager();
  void Collect(v1::Collect::What what);
  void OnResults(std::uint32_t process, const v1::NodeResults& results);
  // fabric_run_endpoints.cc
  void OnEndpoints(std::uint32_t process, v1::EndpointReport& report);
  // Those that have waited; all of them at `boundary`.
  void TakeSubmissions(Time boundary);
  void RefuseSubmission(std::uint32_t process, std::uint64_t number, const absl::Status& why);
  VirtualTime::Phase TimePhase() const;
  // When a command that arrives now takes effect.
  Time Now() const { return time_.Now(TimePhase(), clock_.Now()); }
  // Virtual time continues from its pause, if any.
  void LeavePause();
  // Their state has changed.
  void FollowHold();
  // fabric_run_losses.cc
  void BeginLoss(const v1::SavedLoss& saved);
  void Declare(std::uint32_t process, const std::string& name, std::uint64_t incarnation,
               const std::string& why);
  // No window waits for it any more.
  void LeaveOut(std::uint32_t process);
  void OnPeerLost(std::uint32_t process, const v1::PeerLostReply& reply);
  bool OnlyFaultsWait() const;
  void TakeLosses();
  void OnLossRefused(const Loss& loss, const absl::Status& why);
  // fabric_run_rejoin.cc
  void BeginRejoin(std::uint32_t process);
  void OnPeerBack(std::uint32_t survivor, const v1::PeerBackReply& reply);
  void OnJoined(const v1::Ready& ready);
  void ConfigureRejoined();
  void SubmitRejoin();
  void OnRejoinRefused(std::uint64_t attempt, const absl::Status& why);
  void AbandonRejoin(std::uint32_t process);
  void Welcome(std::uint32_t process);
  std::uint32_t living() const;
  // Gives them to the daemons of the hubs they concern.
  void RouteActions(const std::vector<FaultAction>& actions);
  void OnWaitEdges(std::uint32_t process, const v1::WaitEdges& edges);
  void FinishRun();
  void FinishDeadlock();
  void End(absl::StatusOr<RunResult> result);

  const Setup setup_;
  const std::unique_ptr<Fabric> manager_;  // hosts no hub, only network management
  bool hold_;
  WallClock& clock_;
  DaemonPort* port_;
  Events events_;
  WindowMaster master_;
  WindowPolicy policy_;
  VirtualTime time_;
  Timers timers_;
  RunPrograms programs_;
  FaultLeases leases_;

  Phase phase_ = Phase::kConfiguring;
  std::set<std::uint32_t> ready_;  // processes, while configuring
  Streams streams_;
  ManagerLog manager_log_;
  // By process, input of commands for its next grant; network management's part is its outbox.
  std::vector<v1::WindowGrant> pending_;
  std::vector<BladeFault> blade_faults_;  // all that were or are to come
  RunCommands commands_;
  NodeQueries queries_;
  FinalAnswers final_;
  RunLosses losses_;
  RunRejoin rejoin_;
  Recovery recovery_;
  WindowRecord record_;
  std::optional<absl::StatusOr<RunResult>> result_;
};

}  // namespace percs
