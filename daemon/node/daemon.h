// One percsd: its server, and behind it the core.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/config/address.h"
#include "daemon/metrics/metrics_server.h"
#include "daemon/node/daemon_core.h"
#include "daemon/stream/rate_limit.h"
#include "proto/process/temporary_folder.h"

namespace percs {

struct DaemonOptions {
  std::string controller;      // address
  std::string listen;          // "": a Unix socket in a folder of our own
  std::string advertise_link;  // "": where it listens; a proxy may stand in between
  std::string metrics;         // HOST:PORT for Prometheus; "": none
  std::string metrics_tls;     // file of MetricsServer::Start; "": plain
  DetailOfHubs metrics_detail = {};
  std::string name = "percsd";
  SecurityOptions security = {};
  std::optional<std::uint32_t> place;
  bool spare = false;  // waits while all places are taken
  std::chrono::milliseconds controller_timeout{10'000};
  Host::Tap tap;
};

class Daemon {
 public:
  // Listens, then joins the controller in the background.
  static absl::StatusOr<std::unique_ptr<Daemon>> Start(DaemonOptions options);
  ~Daemon();

  const std::string& address() const { return address_; }
  // Where peers and programs reach it.
  const std::string& advertised() const {
    return options_.advertise_link.empty() ? address_ : options_.advertise_link;
  }
  // Null if it serves none.
  const MetricsServer* metrics() const { return metrics_.get(); }
  // Blocks until the end: OK after the controller's goodbye or Stop, or why it cannot continue.
  absl::Status Wait();
  void Stop();

 private:
  explicit Daemon(DaemonOptions options);
  absl::Status Listen();
  absl::Status ServeMetrics();
  void JoinController() PERCS_LOCKED;
  DaemonCore::Around Around();
  void End(const absl::Status& status) PERCS_LOCKED;

  DaemonOptions options_;
  std::string address_;
  std::optional<TemporaryFolder> folder_;
  ProcessLock lock_;
  std::condition_variable_any ended_;
  bool has_ended_ PERCS_GUARDED = false;
  absl::Status outcome_ PERCS_GUARDED;
  TransportSecurity security_;
  RateLimit limit_;
  DaemonCore core_ PERCS_GUARDED;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<MetricsServer> metrics_;
};

}  // namespace percs
