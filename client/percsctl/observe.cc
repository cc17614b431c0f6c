// percsctl observe: level of logs and detail of metrics.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "client/percsctl/command.h"
#include "client/percsctl/fabric_options.h"

namespace percs {
namespace {

struct ObserveArguments {
  FabricOptions fabric;
  std::vector<std::string> hubs;
  std::string log_level, metrics_detail;
};

Outcome Observe(const ObserveArguments& a, FabricClient& client) {
  v1::ObserveRequest request;
  request.set_log_level(a.log_level);
  request.set_metrics_detail(a.metrics_detail);
  for (const std::string& hub : a.hubs) request.add_nodes(hub);
  if (const auto reply = client.Observe(request); !reply.ok()) return FromStatus(reply.status());
  if (IsJson(a.fabric.format)) {
    fmt::print(
        "{}\n",
        nlohmann::json{{"log_level", a.log_level}, {"metrics_detail", a.metrics_detail}}.dump(2));
    return Outcome::Ok();
  }
  if (!a.log_level.empty()) fmt::print("log level of all processes: {}\n", a.log_level);
  if (!a.hubs.empty())
    fmt::print("{}: metrics detail {}\n", fmt::join(a.hubs, " "), a.metrics_detail);
  return Outcome::Ok();
}

}  // namespace

CommandBody AddObserve(CLI::App& app) {
  auto a = std::make_shared<ObserveArguments>();
  CLI::Option* const hubs = app.add_option("HUB", a->hubs, "Hubs whose metrics detail changes");
  CLI::Option* const level =
      app.add_option("--log-level", a->log_level, "debug, info, warning, error or off");
  CLI::Option* const detail =
      app.add_option("--metrics-detail", a->metrics_detail, "hub, port or vc");
  hubs->needs(detail);
  detail->needs(hubs);
  AddFabricOptions(app, a->fabric);
  return [a, level, detail] {
    if (!*level && !*detail) {
      return Outcome::Fail(ExitCode::kUsage,
                           "nothing to set: give --log-level, or hubs and --metrics-detail");
    }
    return WithFabric(a->fabric, [&](FabricClient& client) { return Observe(*a, client); });
  };
}

}  // namespace percs
