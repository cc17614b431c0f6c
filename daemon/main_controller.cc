// percs-controller: network management, virtual time and the Control service of a fabric.
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "CLI/CLI.hpp"
#include "daemon/config/process_flags.h"
#include "daemon/config/process_setup.h"
#include "daemon/config/signals.h"
#include "daemon/controller/rpc/control_service.h"
#include "proto/process/single_poller.h"
#include "proto/process/version.h"
#include "spdlog/spdlog.h"

namespace {

std::chrono::milliseconds Wall(double seconds) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
}

int Serve(const percs::ControllerOptions& options) {
  const percs::SinglePoller poller;
  auto started = percs::StartController(options);
  if (!started.ok()) {
    spdlog::error("{}", std::string(started.status().message()));
    return 1;
  }
  std::shared_ptr<percs::Controller> controller = *std::move(started);
  std::printf("listening %s\n", controller->address().c_str());
  if (controller->metrics()) {
    std::printf("metrics %s\n", controller->metrics()->url().c_str());
  }
  if (controller->page()) std::printf("page %s\n", controller->page()->link().c_str());
  std::fflush(stdout);
  {
    const percs::EndSignalWatch watch([&controller] { controller->Stop(); });
    controller->Wait();
  }
  controller.reset();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  percs::SetUpProcess("percs-controller");
  CLI::App app("Network management and virtual time of an emulated PERCS network");
  percs::ControllerOptions options;
  double lost_after_seconds = 5, loss_deadline_seconds = 0;
  app.add_option(
         "--listen", options.listen,
         fmt::format(
             "Address to listen on: unix:PATH, HOST:PORT, or tcp for every interface at port {}",
             percs::kControllerPort))
      ->required();
  app.add_option("--daemons", options.daemons, "Number of daemons to wait for")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  app.add_option("--metrics", options.metrics,
                 "HOST:PORT that serves /metrics to Prometheus, and at /discovery the addresses of "
                 "every daemon's metrics (port 0: any free port); default: no metrics");
  percs::AddMetricsTlsFlag(&app, &options.metrics_tls);
  app.add_option("--page", options.page,
                 "HOST:PORT that serves a page with the live fabric to browsers, by HTTPS with "
                 "--tls (port 0: any free port); its link is printed; default: no page");
  app.add_option("--state-dir", options.state_dir,
                 "Folder for the journal of scenarios and commands and for the state from which a "
                 "restarted percs-controller continues; default: nothing is saved");
  std::string kill_at;
  app.add_option("--kill-at", kill_at,
                 "For tests: POINT:N, kill this process when it reaches POINT the Nth time")
      ->group("");
  app.add_option("--journal-limit", options.journal_limit,
                 "Largest size of the journal in bytes; when it is full, no command is accepted")
      ->check(CLI::Range(std::uint64_t{4096}, std::uint64_t{1} << 50))
      ->capture_default_str();
  app.add_option("--lost-after", lost_after_seconds,
                 "While nothing runs: wall seconds without a connection after which a daemon's "
                 "place becomes free")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--loss-deadline", loss_deadline_seconds,
                 "During a run: wall seconds of silence after which a daemon is declared lost and "
                 "the run continues without it; default: 10 in a live run; in other runs only a "
                 "daemon whose process has exited is lost")
      ->check(CLI::PositiveNumber);
  percs::AddSecurityFlags(&app, "controller", &options.security);
  percs::AddLogFlags(&app);
  app.set_version_flag("--version", percs::kSoftwareVersion);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : percs::kUsageError;
  }
  if (const std::size_t colon = kill_at.find(':'); colon != std::string::npos) {
    options.kill_at = {kill_at.substr(0, colon),
                       std::strtoull(kill_at.c_str() + colon + 1, nullptr, 10)};
  }
  options.lost_after = Wall(lost_after_seconds);
  if (loss_deadline_seconds > 0) options.loss_deadline = Wall(loss_deadline_seconds);
  return Serve(options);
}
