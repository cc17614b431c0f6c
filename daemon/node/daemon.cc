#include "daemon/node/daemon.h"

#include <unistd.h>

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

}  // namespace

Daemon::Daemon(DaemonOptions options)
    : options_(std::move(options)),
      limit_(options_.security.requests_per_second),
      core_(&lock_, Around()) {
  core_.metrics_detail() = options_.metrics_detail;
}

DaemonCore::Around Daemon::Around() {
  DaemonCore::Around around;
  around.controller = [this] {
    return SyncTransport::Real(&lock_, options_.controller, security_.credentials);
  };
  around.admit = [this](const std::string& peer) { return limit_.Admit(peer); };
  around.reached = [this](bool there) {
    server_->GetHealthCheckService()->SetServingStatus(kReady, there);
  };
  around.end = [this](const absl::Status& status) PERCS_LOCKED { End(status); };
  around.tap = options_.tap;
  return around;
}

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
    auto folder = TemporaryFolder::MakeForSockets("percs-");
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
  {
    const LockGuard guard(lock_.mutex());
    builder.RegisterService(core_.mesh().service());
    builder.RegisterService(core_.programs().service());
    builder.RegisterService(core_.programs().ranks().service());
  }
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
                                         state = core_.host().State();
                                         detail = core_.metrics_detail();
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
  sync.pid = static_cast<std::uint32_t>(getpid());
  sync.link_address = advertised();
  if (metrics_) sync.metrics_address = metrics_->advertised();
  sync.timeout = options_.controller_timeout;
  core_.Start(std::move(sync));
}

void Daemon::End(const absl::Status& status) {
  if (has_ended_) return;
  has_ended_ = true;
  outcome_ = status;
  ended_.notify_all();
}

absl::Status Daemon::Wait() {
  const LockGuard guard(lock_.mutex());
  while (!has_ended_) ended_.wait(lock_.mutex());
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
    core_.Stop();
  }
  if (server_) server_->Shutdown(std::chrono::system_clock::now() + kShutdownGrace);
  lock_.WaitForNone();
  const LockGuard guard(lock_.mutex());
  core_.Forget();
}

}  // namespace percs
