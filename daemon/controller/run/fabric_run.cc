#include "daemon/controller/run/fabric_run.h"

#include <algorithm>
#include <utility>

#include "absl/types/span.h"
#include "daemon/link/codec.h"
#include "daemon/sync/placement.h"
#include "daemon/sync/rejoin_codec.h"
#include "emulator/base/check.h"
#include "emulator/routing/planner.h"
#include "emulator/sim/check_scenario.h"
#include "fmt/format.h"
#include "proto/scenario/trace_codec.h"
#include "spdlog/spdlog.h"

namespace percs {
namespace {

// A full proof of the first tables costs seconds in larger machines; reroutes are checked apart.
constexpr NodeId kCheckedNodesMax = 256;

absl::Status CheckSelfContained(const v1::Scenario& scenario) {
  const v1::Workload& workload = scenario.workload();
  for (const v1::PatternTraffic* traffic : {&workload.pattern(), &workload.background()}) {
    if (traffic->permutation_file().empty() || traffic->has_inline_permutation()) continue;
    return absl::InvalidArgumentError(
        "permutation_file: the controller does not read files; send the file's content in "
        "inline_permutation");
  }
  if (!workload.has_trace() || workload.trace().has_inline_trace()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "workload.trace.file: the controller does not read files; send the trace's content in "
      "inline_trace");
}

absl::Status CheckReplay(const v1::ApplyRequest& request) {
  if (request.replay().empty()) return absl::OkStatus();
  if (request.hold())
    return absl::FailedPreconditionError(
        "replay: a replay ends with its last command; remove `hold`");
  Time last = 0;
  for (const v1::JournalRecord& record : request.replay()) {
    // It contains the tables themselves, not the name of their payload.
    const bool command =
        FabricRun::IsCommand(record) && record.event_case() != v1::JournalRecord::kLoadRoutes;
    if (!command || record.at() < last || record.at() >= kNever) {
      return absl::InvalidArgumentError(fmt::format(
          "replay: the record at {}ps is not a command, or is out of time order", record.at()));
    }
    last = record.at();
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<FabricRun>> FabricRun::Create(std::uint64_t number,
                                                             const v1::ApplyRequest& request,
                                                             std::uint32_t daemons,
                                                             ProcessLock* lock, DaemonPort* port,
                                                             Events events) {
  if (!request.has_scenario()) return absl::InvalidArgumentError("scenario: missing");
  if (absl::Status s = CheckSelfContained(request.scenario()); !s.ok()) return s;
  if (absl::Status s = CheckReplay(request); !s.ok()) return s;
  auto scenario = BuildScenario(request.scenario(), "");
  if (!scenario.ok()) return scenario.status();
  if (absl::Status s = CheckScenario(*scenario, RunsOn::kDaemons); !s.ok()) return s;
  auto topology = percs::Topology::Create(scenario->topology);
  if (!topology.ok()) return topology.status();
  for (const v1::JournalRecord& record : request.replay()) {
    if (!record.has_endpoint() || record.endpoint().node() < topology->leaves()) continue;
    return absl::InvalidArgumentError(
        fmt::format("replay: operations for windows of node {}, which has none; nodes 0..{} have "
                    "windows",
                    record.endpoint().node(), topology->leaves() - 1));
  }
  std::vector<std::uint64_t> blocks(request.nodes_per_process().begin(),
                                    request.nodes_per_process().end());
  if (blocks.empty()) blocks = EvenBlocks(topology->nodes(), daemons);
  if (blocks.size() != daemons) {
    return absl::InvalidArgumentError(fmt::format(
        "nodes_per_process has {} entries, but {} daemons have joined", blocks.size(), daemons));
  }
  auto placement = MakePlacement(topology->nodes(), blocks, static_cast<int>(daemons));
  if (!placement.ok()) return placement.status();
  if (request.has_trace()) {
    const auto selection = SelectionFromProto(request.trace(), *topology);
    if (!selection.ok()) return selection.status();
  }
  auto manager = Fabric::Create(*scenario, *placement);
  if (!manager.ok()) return manager.status();
  const auto tables = Planner(*topology).Plan(Failures());
  if (topology->nodes() <= kCheckedNodesMax) {
    auto report = CheckTables(*topology, Failures(), tables, scenario->parameters.vc_policy);
    if (!report.ok() && scenario->parameters.vc_policy == VcPolicy::kPosition)
      return report.status();
  }
  for (NodeId node = 0; node < topology->nodes(); ++node) {
    (*manager)->InstallTables(node, tables[node]);
  }
  (*manager)->Start();
  return std::unique_ptr<FabricRun>(new FabricRun(number, request, *std::move(scenario),
                                                  *std::move(manager), *std::move(placement), lock,
                                                  port, std::move(events)));
}

FabricRun::FabricRun(std::uint64_t number, const v1::ApplyRequest& request, Scenario scenario,
                     std::unique_ptr<Fabric> manager, Placement placement, ProcessLock* lock,
                     DaemonPort* port, Events events)
    : setup_{number,
             request.scenario(),
             std::move(scenario),
             std::move(placement),
             request.windows_limit(),
             request.has_trace() ? std::optional(request.trace()) : std::nullopt},
      manager_(std::move(manager)),
      hold_(request.hold()),
      clock_(lock->clock()),
      port_(port),
      events_(std::move(events)),
      master_(setup_.placement.processes, manager_->lookahead(), manager_->crossing()),
      policy_(setup_.scenario.stop_at, setup_.scenario.parameters.stall_limit),
      time_(PacingOf(setup_.message), master_),
      timers_(lock),
      programs_(setup_.daemons(), request.wait_endpoints()),
      streams_{{}, CableStreams(topology(), setup_.placement), SentBatches(setup_.daemons())},
      manager_log_(events_.record != nullptr),
      pending_(setup_.daemons()),
      blade_faults_(setup_.scenario.blade_faults),
      commands_(number, events_.record, {request.replay().begin(), request.replay().end()}),
      queries_(topology(), setup_.scenario.parameters, setup_.placement, port),
      final_(setup_.placement),
      losses_(setup_.placement),
      record_(events_.record != nullptr) {}

void FabricRun::Configure() {
  for (std::uint32_t process = 0; process < setup_.daemons(); ++process) SendConfigure(process);
}

void FabricRun::SendConfigure(std::uint32_t process) {
  auto message = port_->Prepare(process);
  v1::Configure* configure = message->mutable_configure();
  configure->set_run(setup_.number);
  *configure->mutable_scenario() = setup_.message;
  if (setup_.trace) *configure->mutable_trace() = *setup_.trace;
  for (std::uint32_t p = 0; p < setup_.daemons(); ++p) {
    configure->add_nodes_per_process(static_cast<std::uint64_t>(std::count(
        setup_.placement.process_of_node.begin(), setup_.placement.process_of_node.end(), p)));
  }
  for (const auto& [peer, channels] : SharedChannels(topology(), setup_.placement, process)) {
    if (!IsLost(peer)) *configure->add_peers() = port_->Describe(peer);
  }
  LossesToProto(manager_->losses(), configure);
  if (rejoin_.under_way()) configure->set_attempt(rejoin_.attempt());
  const HubTables* last = nullptr;
  for (NodeId node = 0; node < topology().nodes(); ++node) {
    if (setup_.placement.process_of_node[node] != process) continue;
    const auto tables = manager_->tables(node);
    v1::NodeTables* entry = configure->add_tables();
    entry->set_node(node);
    entry->set_hash(tables->Hash());
    if (tables.get() != last) entry->set_tables(tables->Serialize());
    last = tables.get();
  }
  port_->Send(process, std::move(message));
}

void FabricRun::OnMessage(std::uint32_t process, v1::DaemonMessage& message) {
  if (message.has_endpoints()) OnEndpoints(process, *message.mutable_endpoints());
  if (message.has_link_state() && message.link_state().run() == setup_.number)
    streams_.unreached.OnLinkState(process, message.link_state());
  if (message.has_report()) {
    OnReport(process, message);
  } else if (message.has_ready()) {
    OnReady(process, message.ready());
  } else if (message.has_results()) {
    OnResults(process, message.results());
  } else if (message.has_snapshot()) {
    OnAnswer(queries_.OnSnapshot(process, message.snapshot()));
  } else if (message.has_trace()) {
    OnAnswer(queries_.OnTrace(process, message.trace()));
  } else if (message.has_peer_lost()) {
    OnPeerLost(process, message.peer_lost());
  } else if (message.has_peer_back()) {
    OnPeerBack(process, message.peer_back());
  } else if (message.has_wait_edges()) {
    OnWaitEdges(process, message.wait_edges());
  } else if (message.has_endpoints()) {
    Soon();
  } else if (message.has_failure()) {
    OnFailure(process, message.failure());
  }
}

void FabricRun::OnFailure(std::uint32_t process, const v1::Failure& failure) {
  if (failure.run() != setup_.number) return;
  if (!IsLost(process)) {
    return Fail(absl::Status(static_cast<absl::StatusCode>(failure.code()),
                             fmt::format("process {}: {}", process, failure.message())));
  }
  // A daemon on its way into the place of a lost one. An attempt that was given up is ignored.
  if (!rejoin_.Of(process) || !rejoin_.IsAttempt(failure.attempt())) return;
  spdlog::error("run {}: process {} cannot rejoin: {}", setup_.number, process, failure.message());
  AbandonRejoin(process);
  losses_.GivePlace(process);
}

void FabricRun::OnReady(std::uint32_t process, const v1::Ready& ready) {
  if (ready.run() == setup_.number && rejoin_.Of(process)) return OnJoined(ready);
  if (ready.run() != setup_.number || phase_ != Phase::kConfiguring) return;
  if (absl::Status status = TakeReport(process, ready.report()); !status.ok()) return Fail(status);
  ready_.insert(process);
  if (ready_.size() == setup_.daemons()) Start();
}

void FabricRun::Start() {
  v1::WindowReport report;
  report.set_next_event(manager_->NextEventTime());
  const WorkLeft left = manager_->work_left();
  report.set_unfinished(left.unfinished);
  report.set_resident(left.resident_packets);
  PERCS_CHECK(master_.OnReport(setup_.daemons(), report).ok());
  phase_ = Phase::kRunning;
  time_.Start(clock_.Now());
  recovery_.touched =
      true;  // commands come from now on: another controller has to know that it has begun
  if (commands_.any_retaken()) {  // one before this journalled them, and could save nothing more
    time_.pace().Resume(clock_.Now(), time_.not_before());
    LeaveOutRetaken();
  }
  FollowHold();
  spdlog::info("run {}: {} hubs in {} processes, lookahead {} ({})", setup_.number,
               topology().nodes(), setup_.daemons(), FormatTime(master_.lookahead()),
               lookahead_source());
  events_.configured(absl::OkStatus());
  Step();
}

void FabricRun::OnReport(std::uint32_t process, v1::DaemonMessage& message) {
  if (phase_ == Phase::kEnded || phase_ == Phase::kConfiguring) return;
  v1::DaemonMessage* const kept = record_.Reported(process);  // before the windows that follow
  if (absl::Status status = TakeReport(process, message.report()); !status.ok())
    return Fail(status);
  Continue();
  if (kept != nullptr) kept->Swap(&message);
}

absl::Status FabricRun::TakeReport(std::uint32_t process, const v1::WindowReport& report) {
  streams_.batches.OnReport(process, report, master_.unreported_from(process));
  if (absl::Status status = master_.OnReport(process, report); !status.ok()) return status;
  return report.management().empty() ? absl::OkStatus() : manager_log_.Receive(report.management());
}

void FabricRun::Fail(const absl::Status& why) {
  if (phase_ != Phase::kEnded) {
    const bool configuring = phase_ == Phase::kConfiguring;
    for (std::uint32_t process = 0; process < setup_.daemons(); ++process) {
      auto message = port_->Prepare(process);
      message->mutable_drop()->set_run(setup_.number);
      port_->Send(process, std::move(message));
    }
    End(why);
    if (configuring) events_.configured(why);
  }
  queries_.RefuseFromNowOn(why);
}

void FabricRun::End(absl::StatusOr<RunResult> result) {
  phase_ = Phase::kEnded;
  time_.End(clock_.Now());
  timers_.Cancel();
  final_.Abandon();
  if (!result.ok())
    spdlog::error("run {}: {}", setup_.number, std::string(result.status().message()));
  result_ = std::move(result);
  const absl::Status over = absl::FailedPreconditionError(
      fmt::format("run {} ended at {} of virtual time", setup_.number, FormatTime(master_.now())));
  for (Command& command : commands_.Take()) command.done(over);
  if (!result_->ok()) queries_.RefuseAll(result_->status());
  events_.ended();
}

void FabricRun::HandOver(const absl::Status& why) {
  for (Command& command : commands_.Take()) command.done(why);
  queries_.RefuseAll(why);
  timers_.Cancel();
}

v1::FabricState FabricRun::state() const {
  switch (phase_) {
    case Phase::kConfiguring:
      return v1::FABRIC_STATE_CONFIGURING;
    case Phase::kIdle:
    case Phase::kHeld:
      return v1::FABRIC_STATE_IDLE;
    case Phase::kPaused:
      return v1::FABRIC_STATE_PAUSED;
    case Phase::kEnded:
      return result_->ok() ? v1::FABRIC_STATE_FINISHED : v1::FABRIC_STATE_FAILED;
    default:
      return v1::FABRIC_STATE_RUNNING;
  }
}

Time FabricRun::virtual_time() const {
  if (ended() && result_->ok()) return (*result_)->virtual_time;
  return time_.Said(TimePhase(), clock_.Now());
}

VirtualTime::Phase FabricRun::TimePhase() const {
  if (phase_ == Phase::kEnded) return VirtualTime::Phase::kEnded;
  if (commands_.any_retaken()) return VirtualTime::Phase::kRetaking;
  return phase_ == Phase::kPaused ? VirtualTime::Phase::kPaused : VirtualTime::Phase::kMoving;
}

absl::StatusOr<FaultPreview> FabricRun::Preview(const FaultSpec& spec) const {
  FabricView view{topology(),
                  setup_.scenario.parameters,
                  setup_.scenario.seed,
                  manager_->known_failures(),
                  [this](NodeId node) { return manager_->tables(node); },
                  manager_->trees()};
  return PreviewFault(spec, view);
}

Epoch FabricRun::epoch() const {
  const auto& reroutes = manager_->reroutes();
  Epoch epoch = 1;
  for (const Reroute& r : reroutes) {
    if (r.committed <= master_.now()) epoch = std::max(epoch, r.epoch);
  }
  return epoch;
}

}  // namespace percs
