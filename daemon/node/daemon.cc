#include "daemon/node/daemon.h"

#include <unistd.h>

#include <random>
#include <utility>

#include "daemon/config/log.h"
#include "daemon/config/probe.h"
#include "daemon/metrics/process_metrics.h"
#include "daemon/stream/server_settings.h"
#include "fmt/format.h"
#include "grpcpp/ext/proto_server_reflection_plugin.h"
#include "grpcpp/health_check_service_interface.h"
#include "spdlog/spdlog.h"

namespace percs {
namespace {

constexpr std::chrono::milliseconds kShutdownGrace(200);
// Messages that the controller has not acknowledged; beyond that programs wait, and reports have
// room.
constexpr std::size_t kSubmissionsMax = 1024;
// Between two slices of a window: who waits for the lock is woken before it is taken again.
constexpr std::chrono::milliseconds kBreath(1);

std::uint64_t RandomNumber() {
  std::random_device device;
  return (static_cast<std::uint64_t>(device()) << 32) | device();
}

}  // namespace

Daemon::Daemon(DaemonOptions options)
    : options_(std::move(options)),
      incarnation_(RandomNumber()),
      limit_(options_.security.requests_per_second),
      mesh_(&lock_, {[this] { host_.Progress(); },
                     [this](const absl::Status& status) { host_.Fail(status); },
                     [this](const std::string& peer) { return limit_.Admit(peer); },
                     [this](const std::vector<v1::UnreachablePeer>& peers) {
                       if (sync_->connected()) host_.TellUnreachable(peers);
                     }}),
      programs_(&lock_, {[this] { return sync_->session().unacknowledged() < kSubmissionsMax; },
                         [this] { return sync_->session().Prepare(); },
                         [this](std::unique_ptr<v1::DaemonMessage> m) {
                           sync_->session().Send(std::move(m));
                         },
                         [this](const std::string& peer) { return limit_.Admit(peer); }}),
      host_(&mesh_, &programs_,
            {[this] { return sync_->session().Prepare(); },
             [this](std::unique_ptr<v1::DaemonMessage> m) { sync_->session().Send(std::move(m)); },
             [this](std::function<void()> then) { slice_.Set(kBreath, std::move(then)); }},
            options_.tap) {}

absl::StatusOr<std::unique_ptr<Daemon>> Daemon::Start(DaemonOptions options) {
  std::unique_ptr<Daemon> daemon(new Daemon(std::move(options)));
  auto security = LoadSecurity(daemon->options_.security, Role::kDaemon);
  if (!security.ok()) return security.status();
  daemon->security_ = *std::move(security);
  if (absl::Status status = daemon->Listen(); !status.ok()) return status;
  if (absl::Status status = daemon->ServeMetrics(); !status.ok()) return status;
  const LockGuard guard(daemon->lock_.mutex());
  daemon->JoinController();
  return daemon;
}

absl::Status Daemon::Listen() {
  if (options_.listen.empty()) {
    auto folder = SocketFolder::Create();
    if (!folder.ok()) return folder.status();
    folder_.emplace(*std::move(folder));
    options_.listen = fmt::format("unix:{}/link", folder_->path());
  }
  auto address = ParseAddress(options_.listen, 0);
  if (!address.ok()) return address.status();
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  ConfigureServer(&builder);
  builder.RegisterService(mesh_.service());
  builder.RegisterService(programs_.service());
  auto server = StartServer(&builder, security_, &*address);
  if (!server.ok()) return server.status();
  server_ = *std::move(server);
  server_->GetHealthCheckService()->SetServingStatus(kReady, false);
  address_ = address->ToString();
  return absl::OkStatus();
}

absl::Status Daemon::ServeMetrics() {
  if (options_.metrics.empty()) return absl::OkStatus();
  auto server = MetricsServer::Start(options_.metrics, options_.metrics_tls,
                                     {MetricsPage([this](MetricFamilies* families) {
                                       HostState state;
                                       DetailOfHubs detail;
                                       {
                                         const LockGuard guard(lock_.mutex());
                                         state = host_.State();
                                         detail = options_.metrics_detail;
                                       }
                                       AddHubMetrics(state, detail, families);
                                       AddProcessMetrics(families);
                                     })},
                                     security_.plaintext_allowed);
  if (!server.ok()) return server.status();
  metrics_ = *std::move(server);
  return absl::OkStatus();
}

void Daemon::JoinController() {
  SyncClientOptions sync;
  sync.controller = options_.controller;
  sync.credentials = security_.credentials;
  sync.place = options_.place;
  sync.spare = options_.spare;
  sync.name = options_.name;
  sync.link_address = advertised();
  if (metrics_) sync.metrics_address = metrics_->advertised();
  sync.incarnation = incarnation_;
  sync.timeout = options_.controller_timeout;
  sync_ = std::make_shared<SyncClient>(
      &lock_, std::move(sync),
      SyncClient::Events{
          [this] {
            spdlog::info("joined {} as process {}", options_.controller, sync_->process());
          },
          [this](v1::ControllerMessage& message) { return OnControllerMessage(message); },
          [this](const absl::Status& status) { OnGone(status); },
          [this](bool there) {
            server_->GetHealthCheckService()->SetServingStatus(kReady, there);
            if (there) programs_.Submit();
          }});
  sync_->Start();
}

// One that was declared lost while it could not answer is not listened to any more. Another
// incarnation may have the place that it had.
void Daemon::OnGone(const absl::Status& status) {
  if (!absl::IsAborted(status)) return End(status);
  spdlog::warn("{}", std::string(status.message()));
  host_.Drop(
      absl::UnavailableError("the controller declared this percsd lost, and its hubs are lost"));
  incarnation_ = RandomNumber();
  anew_.Set(std::chrono::milliseconds(0), [this] {  // nobody is in the old one then
    if (has_ended_) return;
    sync_->Stop();
    before_.push_back(std::move(sync_));
    JoinController();
  });
}

// The controller has checked the words.
void Daemon::Observe(const v1::Observe& observe) {
  if (!observe.log_level().empty() && !SetLogLevel(observe.log_level()).ok()) return;
  const auto detail = ParseMetricsDetail(observe.metrics_detail());
  if (!detail.ok()) return;
  for (const std::uint32_t node : observe.nodes()) options_.metrics_detail.some[node] = *detail;
}

absl::Status Daemon::OnControllerMessage(v1::ControllerMessage& message) {
  if (message.has_grant()) {
    host_.Grant(message.mutable_grant());
  } else if (message.has_configure()) {
    spdlog::info("run {}: building", message.configure().run());
    options_.metrics_detail.some.clear();  // other hubs may have their numbers now
    host_.Configure(message.configure(), LinkIdentity{sync_->fabric(), 0, incarnation_,
                                                      sync_->process(), security_.credentials});
    delete message.release_configure();  // it may be large, and no window needs it again
  } else if (message.has_peer_lost()) {
    host_.PeerLost(message.peer_lost());
  } else if (message.has_peer_back()) {
    host_.PeerBack(message.peer_back());
  } else if (message.has_break_links()) {
    mesh_.Break();
  } else if (message.has_ping()) {
    auto pong = sync_->session().Prepare();
    pong->mutable_pong();
    sync_->session().Send(std::move(pong));
  } else if (message.has_collect()) {
    host_.Collect(message.collect());
  } else if (message.has_drop()) {
    host_.Drop();
  } else if (message.has_endpoint_refused()) {
    programs_.Refuse(message.endpoint_refused());
  } else if (message.has_observe()) {
    Observe(message.observe());
  } else if (message.has_bye()) {
    End(absl::OkStatus());
  }
  return absl::OkStatus();
}

void Daemon::End(const absl::Status& status) {
  if (has_ended_) return;
  has_ended_ = true;
  outcome_ = status;
  ended_.notify_all();
}

absl::Status Daemon::Wait() {
  std::unique_lock<ProcessMutex> lock(lock_.mutex());
  ended_.wait(lock, [this] { return has_ended_; });
  return outcome_;
}

void Daemon::Stop() {
  const LockGuard guard(lock_.mutex());
  End(absl::OkStatus());
}

Daemon::~Daemon() {
  metrics_.reset();  // waits for the scrape under way, which takes the lock
  {
    const LockGuard guard(lock_.mutex());
    anew_.Cancel();
    slice_.Cancel();
    if (sync_) sync_->Stop();
    programs_.Leave();
    host_.Drop();
  }
  if (server_) server_->Shutdown(std::chrono::system_clock::now() + kShutdownGrace);
  lock_.WaitForNone();
  const LockGuard guard(lock_.mutex());
  sync_.reset();
  before_.clear();
}

}  // namespace percs
