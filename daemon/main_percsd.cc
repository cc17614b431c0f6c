// percsd: hosts the hubs that a controller gives it.
#include <cstdio>

#include "CLI/CLI.hpp"
#include "client/endpoint/tun_port.h"
#include "daemon/config/probe.h"
#include "daemon/config/process_flags.h"
#include "daemon/config/process_setup.h"
#include "daemon/config/signals.h"
#include "daemon/node/daemon.h"
#include "proto/process/single_poller.h"
#include "proto/process/version.h"
#include "spdlog/spdlog.h"

namespace {

// `percsd probe`: a health check's exit code.
struct ProbeFlags {
  std::string address, tls;
  bool ready = false;
};

struct Flags {
  percs::DaemonOptions options;
  int place = -1;
  double timeout_seconds = 10;
  std::string metrics_detail = "port";
  percs::client::TunOptions tun;
};

void Declare(CLI::App* app, Flags* flags) {
  app->add_option("--controller", flags->options.controller,
                  "Address of percs-controller: unix:PATH or HOST:PORT");
  app->add_option("--listen", flags->options.listen,
                  "Address to listen on for other daemons: unix:PATH or HOST:PORT (port 0: any "
                  "free port); default: a Unix socket in a new folder");
  app->add_option("--advertise-link", flags->options.advertise_link,
                  "Address that other daemons connect to, if it differs from --listen");
  app->add_option("--name", flags->options.name, "Name in status reports")->capture_default_str();
  app->add_option("--index", flags->place,
                  "Place among the daemons, from 0; waits while its former holder is neither "
                  "connected nor lost; default: assigned by the controller")
      ->check(CLI::Range(0, 65534));
  app->add_option(
      "--metrics", flags->options.metrics,
      "HOST:PORT that serves /metrics to Prometheus (port 0: any free port); default: no metrics");
  percs::AddMetricsTlsFlag(app, &flags->options.metrics_tls);
  app->add_option("--metrics-detail", flags->metrics_detail,
                  "hub: sums per link class; port: each link; vc: each link and virtual channel")
      ->capture_default_str();
  app->add_option("--controller-timeout", flags->timeout_seconds,
                  "Wall seconds to keep running without the controller")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app->add_flag("--spare", flags->options.spare,
                "While all places are taken, wait for a free one instead of exiting");
  CLI::Option* const tun =
      app->add_option("--tun", flags->tun.device,
                      "Create this network interface (like percs0) for the first hub of this "
                      "percsd; programs of this network namespace reach other hubs through it by "
                      "IP; needs CAP_NET_ADMIN; default: none");
  tun->default_str("");
  flags->tun.device.clear();
  app->add_option("--tun-window", flags->tun.window,
                  "Window of the hub for --tun; the same number at all hubs")
      ->needs(tun)
      ->capture_default_str();
  percs::AddSecurityFlags(app, "daemon", &flags->options.security);
  percs::AddLogFlags(app);
  app->set_version_flag("--version", percs::kSoftwareVersion);
}

CLI::App* DeclareProbe(CLI::App* app, ProbeFlags* flags) {
  CLI::App* const probe = app->add_subcommand(
      "probe", "Check whether a percsd or percs-controller is serving, and exit");
  probe->add_option("ADDRESS", flags->address, "Address that it listens on: unix:PATH or HOST:PORT")
      ->required();
  probe->add_option("--tls", flags->tls, "Folder of its own identity; default: plaintext");
  probe->add_flag("--ready", flags->ready, "Also check that it has a session with the controller");
  return probe;
}

int RunProbe(const ProbeFlags& flags) {
  const absl::Status status =
      percs::Probe(flags.address, flags.ready ? percs::kReady : "", flags.tls);
  if (status.ok()) return 0;
  spdlog::error("{}", std::string(status.message()));
  return 1;
}

// The identity of a percsd may attach at itself.
std::unique_ptr<percs::client::TunKeeper> KeepTun(const Flags& flags, const percs::Daemon& daemon,
                                                  std::unique_ptr<percs::client::TunPort> port) {
  percs::client::EndpointOptions at;
  at.daemon = daemon.advertised();
  at.tls = flags.options.security.tls;
  return std::make_unique<percs::client::TunKeeper>(
      std::move(port), std::move(at), [device = flags.tun.device](const std::string& what) {
        spdlog::info("{}: {}", device, what);
      });
}

// Runs it until its end.
absl::Status Serve(const Flags& flags) {
  const percs::SinglePoller poller;
  std::unique_ptr<percs::client::TunPort> port;
  if (!flags.tun.device.empty()) {
    auto opened = percs::client::TunPort::Open(
        flags.tun);  // first: a missing capability is reported before it joins
    if (!opened.ok()) return opened.status();
    port = *std::move(opened);
  }
  auto daemon = percs::Daemon::Start(flags.options);
  if (!daemon.ok()) return daemon.status();
  std::printf("listening %s\n", (*daemon)->address().c_str());
  if ((*daemon)->metrics()) std::printf("metrics %s\n", (*daemon)->metrics()->url().c_str());
  std::fflush(stdout);
  std::unique_ptr<percs::client::TunKeeper> tun;
  if (port) tun = KeepTun(flags, **daemon, std::move(port));
  const percs::EndSignalWatch watch([&daemon] { (*daemon)->Stop(); });
  return (*daemon)->Wait();
}

}  // namespace

int main(int argc, char** argv) {
  percs::SetUpProcess("percsd");
  CLI::App app("Hosts hubs of a PERCS network and carries their flits");
  Flags flags;
  Declare(&app, &flags);
  ProbeFlags probe_flags;
  const CLI::App* const probe = DeclareProbe(&app, &probe_flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : percs::kUsageError;
  }
  if (*probe) return RunProbe(probe_flags);
  if (flags.options.controller.empty()) {
    spdlog::error(
        "--controller is required: the address of percs-controller, unix:PATH or HOST:PORT");
    return percs::kUsageError;
  }
  const auto detail = percs::ParseMetricsDetail(flags.metrics_detail);
  if (!detail.ok()) {
    spdlog::error("--metrics-detail: {}", std::string(detail.status().message()));
    return percs::kUsageError;
  }
  flags.options.metrics_detail.all = *detail;
  if (flags.place >= 0) flags.options.place = static_cast<std::uint32_t>(flags.place);
  flags.options.controller_timeout =
      std::chrono::milliseconds(static_cast<std::int64_t>(flags.timeout_seconds * 1000));
  const absl::Status outcome = Serve(flags);
  if (outcome.ok()) return 0;
  spdlog::error("{}", std::string(outcome.message()));
  return 1;
}
