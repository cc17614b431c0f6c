#include "daemon/controller/controller.h"

#include <unistd.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "daemon/config/log.h"
#include "daemon/controller/status_reply.h"
#include "daemon/metrics/fabric_metrics.h"
#include "daemon/metrics/process_metrics.h"
#include "daemon/stream/server_settings.h"
#include "fmt/format.h"
#include "grpcpp/ext/proto_server_reflection_plugin.h"
#include "grpcpp/health_check_service_interface.h"
#include "proto/convert/run_result.h"
#include "proto/convert/topology.h"
#include "proto/process/out_of_memory.h"
#include "proto/process/version.h"
#include "proto/window/endpoint_codec.h"
#include "spdlog/spdlog.h"

namespace percs {
namespace {

constexpr std::chrono::milliseconds kShutdownGrace(200);
constexpr int kFarewellPolls = 100;
constexpr std::chrono::milliseconds kFarewellPoll(10);

}  // namespace

Controller::Controller(ControllerOptions options, MakeControlFront make_front)
    : options_(std::move(options)),
      limit_(options_.security.requests_per_second),
      membership_(&lock_, options_.daemons, options_.fabrics(), MembershipEvents()),
      loss_watch_(options_.daemons, this),
      front_(make_front(this)) {}

Membership::Events Controller::MembershipEvents() {
  Membership::Events events;
  events.message = [this](std::uint32_t place, v1::DaemonMessage& message) PERCS_LOCKED {
    loss_watch_.Heard(place);
    if (run_) run_->OnMessage(place, message);
    return absl::OkStatus();
  };
  events.reached = [this]() PERCS_LOCKED {
    if (run_) run_->TakeBack();
  };
  events.lost = [this](const Member& member, const std::string& why) PERCS_LOCKED {
    if (run_) run_->Lose(member.place(), member.Describe(), member.incarnation(), why);
  };
  events.changed = [this](std::uint32_t place) PERCS_LOCKED {
    places_changed_.insert(place);
    loss_watch_.Heard(place);  // the silence of a daemon is not that of the next one in its place
  };
  events.admit = [this](const std::string& peer) { return limit_.Admit(peer); };
  return events;
}

absl::StatusOr<std::unique_ptr<Controller>> Controller::Start(ControllerOptions options,
                                                              MakeControlFront make_front) {
  std::unique_ptr<Controller> controller(new Controller(std::move(options), make_front));
  auto security = LoadSecurity(controller->options_.security, Role::kController);
  if (!security.ok()) return security.status();
  controller->security_ = *std::move(security);
  absl::Status status = controller->OpenState();
  if (status.ok() && !controller->options_.listen.empty()) status = controller->Listen();
  if (status.ok()) status = controller->ServeMetrics();
  if (status.ok()) status = controller->ServePage();
  if (!status.ok()) {
    controller->Abandon();
    return status;
  }
  const LockGuard guard(controller->lock_.mutex());
  controller->WatchForLosses();
  return controller;
}

absl::Status Controller::OpenJournal() {
  if (absl::Status s = journal_.Open(options_.state_dir, options_.journal_limit); !s.ok()) return s;
  runs_ = journal_.last_run();
  if (journal_.cut_off() > 0) {
    spdlog::warn("the journal in {} ended with {} bytes of an incomplete record; they were cut off",
                 options_.state_dir, journal_.cut_off());
  }
  return absl::OkStatus();
}

absl::Status Controller::RecordApply(const v1::ApplyRequest& request) {
  if (!journal_.is_open()) return absl::OkStatus();
  const auto scenario = journal_.Store(request.scenario().SerializeAsString());
  if (!scenario.ok()) return scenario.status();
  v1::JournalRecord record;
  record.set_run(runs_);
  v1::JournalApply* apply = record.mutable_apply();
  *apply->mutable_versions() = OurVersions();
  apply->set_scenario(*scenario);
  *apply->mutable_nodes_per_process() = request.nodes_per_process();
  apply->set_hold(request.hold());
  apply->set_windows_limit(request.windows_limit());
  apply->set_wait_endpoints(request.wait_endpoints());
  if (request.has_trace()) *apply->mutable_trace() = request.trace();
  return journal_.Append({&record, 1});
}

absl::Status Controller::KeepRoutes(const v1::LoadRoutesRequest& request,
                                    v1::JournalRecord* record) {
  record->set_load_routes(0);  // no payload without a journal
  if (!journal_.is_open()) return absl::OkStatus();
  const auto hash = journal_.Store(request.SerializeAsString());
  if (hash.ok()) record->set_load_routes(*hash);
  return hash.status();
}

absl::Status Controller::Listen() {
  auto address = ParseAddress(options_.listen, kControllerPort);
  if (!address.ok()) return address.status();
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  ConfigureServer(&builder);
  {
    const LockGuard guard(lock_.mutex());
    builder.RegisterService(membership_.service());
  }
  builder.RegisterService(front_->service());
  auto server = StartServer(&builder, security_, &*address);
  if (!server.ok()) return server.status();
  server_ = *std::move(server);
  address_ = address->ToString();
  return absl::OkStatus();
}

absl::Status Controller::ServeMetrics() {
  if (options_.metrics.empty()) return absl::OkStatus();
  const auto status = [this] {
    v1::StatusReply reply;
    const LockGuard guard(lock_.mutex());
    percs::FillStatus(*this, &reply);
    return reply;
  };
  auto server = MetricsServer::Start(options_.metrics, options_.metrics_tls,
                                     {MetricsPage([status](MetricFamilies* families) {
                                        AddFabricMetrics(status(), families);
                                        AddProcessMetrics(families);
                                      }),
                                      {"/discovery", "application/json",
                                       [status](const MetricsServer& server) {
                                         return DiscoveryList(status(), server.advertised());
                                       }}},
                                     security_.plaintext_allowed);
  if (!server.ok()) return server.status();
  metrics_ = *std::move(server);
  return absl::OkStatus();
}

absl::Status Controller::ServePage() {
  if (options_.page.empty()) return absl::OkStatus();
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);  // answers of this process to itself
  PageOptions options{options_.page, options_.security.tls, security_.plaintext_allowed};
  // A controller that continues has the link of the one before it.
  if (!options_.state_dir.empty()) options.token_file = options_.state_dir + "/page.token";
  auto server = PageServer::Start(options, server_->InProcessChannel(arguments),
                                  [this](const SightDone& done) { Look(done); });
  if (!server.ok()) return server.status();
  page_ = *std::move(server);
  return absl::OkStatus();
}

void Controller::Wait() {
  const LockGuard guard(lock_.mutex());
  while (!has_ended_) ended_.wait(lock_.mutex());
}

void Controller::Stop() {
  const LockGuard guard(lock_.mutex());
  End();
}

void Controller::End() {
  has_ended_ = true;
  ended_.notify_all();
}

void Controller::Shutdown() {
  shut_down_ = true;
  End();
}

Controller::~Controller() {
  page_.reset();
  metrics_.reset();  // waits for the scrape under way, which takes the lock
  if (store_.is_open() && !shut_down_) {
    HandOver();
  } else {
    SayGoodbye();
  }
  if (server_) server_->Shutdown(std::chrono::system_clock::now() + kShutdownGrace);
  {
    const LockGuard guard(lock_.mutex());
    run_.reset();
  }
  lock_.WaitForNone();
}

void Controller::SayGoodbye() {
  {
    const LockGuard guard(lock_.mutex());
    has_ended_ = true;
    if (run_ && !run_->ended()) run_->Fail(absl::CancelledError("the controller is shutting down"));
    membership_.Goodbye();
  }
  for (int i = 0; i < kFarewellPolls; ++i) {
    std::this_thread::sleep_for(kFarewellPoll);
    const LockGuard guard(lock_.mutex());
    if (membership_.farewells_delivered()) break;
  }
  const LockGuard guard(lock_.mutex());
  front_->Leave();
  membership_.Leave();
  keep_timer_.Cancel();
  loss_timer_.Cancel();
}

absl::Status Controller::CheckNotEnding() const {
  if (!has_ended_) return absl::OkStatus();
  return absl::UnavailableError("the controller is shutting down");
}

absl::Status Controller::CheckIdle() const {
  if (absl::Status status = CheckNotEnding(); !status.ok()) return status;
  if (run_ && !run_->ended()) {
    return absl::FailedPreconditionError(
        fmt::format("run {} ({}) is in progress; `percsctl status` shows how far it is, `percsctl "
                    "stop --wait` ends its workload and waits until the fabric has drained",
                    run_->number(), run_->scenario().name));
  }
  if (!membership_.complete()) {
    return absl::FailedPreconditionError(
        fmt::format("{} of {} daemons have joined", membership_.ready(), membership_.places()));
  }
  return absl::OkStatus();
}

void Controller::Apply(const v1::ApplyRequest& request, ApplyDone done) {
  if (absl::Status status = CheckIdle(); !status.ok()) return done(status);
  applied_at_ = lock_.clock().Now();
  auto run = WithinMemory("the scenario", [&]() PERCS_LOCKED {
    return FabricRun::Create(runs_ + 1, request, membership_.places(), &lock_, this, RunEvents());
  });
  if (!run.ok()) return done(run.status());
  ++runs_;
  if (absl::Status status = RecordApply(request); !status.ok()) return done(status);
  last_error_.clear();
  // Questions about the run before get no answer.
  if (run_)
    run_->Fail(
        absl::UnavailableError("the fabric is being configured for another scenario; try again"));
  run_ = *std::move(run);
  if (store_.is_open()) begun_ = request;
  apply_done_ = std::move(done);
  run_->Configure();
}

FabricRun::Events Controller::RunEvents() {
  FabricRun::Events events;
  events.configured = [this](const absl::Status& status) PERCS_LOCKED { OnConfigured(status); };
  events.ended = [this]() PERCS_LOCKED { OnRunEnded(); };
  if (journal_.is_open()) {
    events.record = [this](const std::vector<v1::JournalRecord>& records) PERCS_LOCKED {
      absl::Status status = AppendCommands(records);
      options_.kill_at.Reached("journalled");
      return status;
    };
  }
  return events;
}

// Long data of programs is kept beside the journal.
absl::Status Controller::AppendCommands(const std::vector<v1::JournalRecord>& records) {
  const auto is_long = [](const v1::JournalRecord& record) {
    return record.has_endpoint() && HasLongData(record.endpoint());
  };
  if (std::none_of(records.begin(), records.end(), is_long)) return journal_.Append(records);
  std::vector<v1::JournalRecord> kept = records;
  for (v1::JournalRecord& record : kept) {
    if (!is_long(record)) continue;
    absl::Status status =
        StoreData(record.mutable_endpoint(),
                  [this](const std::string& bytes) PERCS_LOCKED { return journal_.Store(bytes); });
    if (!status.ok()) return status;
  }
  return journal_.Append(kept);
}

absl::StatusOr<v1::FindHubReply> Controller::FindHub(const std::string& name) {
  auto run = ActiveRun();
  if (!run.ok()) return run.status();
  const Topology& topology = (*run)->topology();
  const auto node = topology.ParseNode(name);
  if (!node.ok()) return absl::NotFoundError(node.status().message());
  if (*node >= topology.leaves()) return absl::NotFoundError(name + " has no windows");
  const std::uint32_t process = (*run)->placement().process_of_node[*node];
  const Member* member = membership_.member(process);
  if ((*run)->master().IsLost(process) || member == nullptr) {
    return absl::FailedPreconditionError(
        fmt::format("the daemon of {} is lost, and so is the hub", name));
  }
  v1::FindHubReply reply;
  reply.set_node(*node);
  reply.set_process(process);
  reply.set_address(member->link_address());
  reply.set_name(member->name());
  return reply;
}

void Controller::OnConfigured(const absl::Status& status) {
  ApplyDone answer = std::exchange(apply_done_, nullptr);
  if (!answer) return;
  if (!status.ok()) return answer(status);
  v1::ApplyReply reply;
  reply.set_run(run_->number());
  reply.set_nodes(run_->topology().nodes());
  reply.set_blades(run_->topology().blades());
  reply.set_crossbars(run_->topology().crossbars());
  reply.set_processes(membership_.places());
  reply.set_lookahead(run_->master().lookahead());
  reply.set_lookahead_source(run_->lookahead_source());
  reply.set_wall_configure_seconds(
      std::chrono::duration<double>(lock_.clock().Now() - applied_at_).count());
  answer(std::move(reply));
}

void Controller::OnRunEnded() {
  const auto& result = run_->result();
  if (!result.ok()) last_error_ = std::string(result.status().message());
  // The next controller may decide otherwise, so nobody hears of it before it is saved.
  if (store_.is_open())
    return ended_runs_.push_back({run_->number(), run_->virtual_time(), ResultOfRun()});
  finished_.Add(run_->number(), ResultOfRun());
  front_->OnRunEnded(run_->number());
}

absl::StatusOr<v1::GetResultReply> Controller::ResultOfRun() const {
  const auto& result = run_->result();
  if (!result.ok()) return result.status();
  v1::GetResultReply reply;
  reply.set_run(run_->number());
  RunResultToProto(*result, run_->topology(), reply.mutable_result());
  reply.set_wall_seconds(run_->wall_seconds());
  reply.set_processes(membership_.places());
  reply.set_transport(Transport());
  TopologyToProto(run_->topology().spec(), reply.mutable_topology());
  BladesToProto(run_->topology().spec(), reply.mutable_blades());
  return reply;
}

std::string Controller::Transport() const {
  for (std::uint32_t p = 0; p < membership_.places(); ++p) {
    const Member* member = membership_.member(p);
    if (member && member->link_address().rfind("unix:", 0) != 0) return "tcp";
  }
  return "unix";
}

absl::StatusOr<v1::GetResultReply> Controller::Result(std::uint64_t number) const {
  if (run_ && !run_->ended() && run_->number() == number) {
    return absl::FailedPreconditionError(fmt::format("run {} has not ended yet", number));
  }
  if (EndIsUnsaved(number) || (number == 0 && !ended_runs_.empty())) {
    return absl::UnavailableError(
        fmt::format("run {} has ended, but its result cannot be saved: {}",
                    ended_runs_.back().number, std::string(storage_trouble_.message())));
  }
  return finished_.Get(number);
}

bool Controller::EndIsUnsaved(std::uint64_t number) const {
  return std::any_of(ended_runs_.begin(), ended_runs_.end(),
                     [number](const EndedRun& run) { return run.number == number; });
}

absl::StatusOr<FabricRun*> Controller::ActiveRun() {
  if (absl::Status status = CheckNotEnding(); !status.ok()) return status;
  if (!run_) return absl::FailedPreconditionError("no scenario is applied");
  if (run_->state() == v1::FABRIC_STATE_CONFIGURING) {
    return absl::FailedPreconditionError("the fabric is being configured");
  }
  if (run_->ended() && !run_->result().ok()) {
    return absl::FailedPreconditionError(
        fmt::format("run {} has failed: {}; apply a scenario", run_->number(), last_error_));
  }
  return run_.get();
}

absl::Status Controller::Reset() {
  if (absl::Status status = CheckNotEnding(); !status.ok()) return status;
  if (!run_) return absl::OkStatus();
  run_->Fail(
      absl::CancelledError("the fabric was reset"));  // if it has ended, what was asked of it
  for (std::uint32_t p = 0; p < membership_.places(); ++p) {
    if (!membership_.member(p)) continue;
    auto message = Prepare(p);
    message->mutable_drop()->set_run(run_->number());
    Send(p, std::move(message));
  }
  run_.reset();
  last_error_.clear();
  return absl::OkStatus();
}

v1::FabricState Controller::state() const {
  if (run_ && !run_->ended()) return run_->state();  // also without those that are lost
  if (!membership_.complete()) return v1::FABRIC_STATE_JOINING;
  return run_ ? run_->state() : v1::FABRIC_STATE_EMPTY;
}

}  // namespace percs
