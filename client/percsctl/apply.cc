// percsctl apply: a scenario over the daemons of a running fabric; `result` and `stop`, which end
// it.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "client/lib/interrupt.h"
#include "client/lib/scenario_file.h"
#include "client/percsctl/command.h"
#include "client/percsctl/fabric_options.h"
#include "client/percsctl/format.h"
#include "client/percsctl/progress.h"
#include "client/percsctl/report.h"
#include "client/percsctl/scenario_options.h"
#include "client/percsctl/screen.h"
#include "proto/convert/run_result.h"
#include "proto/convert/topology.h"
#include "proto/scenario/build.h"
#include "proto/scenario/units.h"

namespace percs {
namespace {

struct ApplyArguments {
  FabricOptions fabric;
  std::string file, pace, timeout = "wall:120s";
  std::vector<std::uint64_t> placement;
  std::vector<std::string> settings;
  std::optional<std::uint64_t> seed;
  std::uint32_t wait_endpoints = 0;
  bool wait = false, hold = false, progress = false;
};

struct ResultArguments {
  FabricOptions fabric;
  std::uint64_t run = 0;
  bool wait = false;
};

Outcome PrintResult(const v1::GetResultReply& reply, const Topology& topology, bool json) {
  auto result = RunResultFromProto(reply.result(), topology);
  if (!result.ok()) return Outcome::Fail(ExitCode::kFailed, Text(result.status()));
  const RunReport report{
      *std::move(result), reply.wall_seconds(),
      fmt::format("{} over {}", Counted(reply.processes(), "daemon"), reply.transport()),
      reply.result().trees(), reply.result().faults()};
  return PrintReport(report, topology, json);
}

// The run's own error: a deadlock is the fabric's, everything else is a failure of the run.
Outcome RunError(const absl::Status& status) {
  Outcome outcome = FromStatus(status);
  if (status.code() == absl::StatusCode::kFailedPrecondition &&
      Text(status).find("deadlock") != std::string::npos) {
    outcome.code = ExitCode::kDeadlock;
  }
  return outcome;
}

Outcome AwaitResult(FabricClient& client, std::uint64_t run, const Scenario& scenario,
                    const ApplyArguments& a) {
  const auto topology = Topology::Create(scenario.topology);
  if (!topology.ok()) return FromStatus(topology.status());
  InterruptGuard interrupt;
  RunProgressLine progress(scenario, a.progress);
  const auto reply = client.WatchRun(run, [&](const v1::RunProgress& p) {
    progress.Show(p.virtual_time(), p.packets_delivered());
    return !InterruptGuard::raised();
  });
  progress.Clear();
  if (!reply.ok()) return RunError(reply.status());
  return PrintResult(*reply, *topology, IsJson(a.fabric.format));
}

absl::Status SetPace(const std::string& text, v1::Scenario& scenario) {
  if (text.empty()) return absl::OkStatus();
  if (text == "max") {
    scenario.mutable_run()->set_clock(v1::CLOCK_BATCH);
    return absl::OkStatus();
  }
  scenario.mutable_run()->set_clock(v1::CLOCK_LIVE);
  const absl::Status set = ApplySetting(&scenario, "run.pace=" + text);
  if (set.ok()) return set;
  return absl::Status(set.code(), fmt::format("--pace: {}", std::string(set.message())));
}

absl::StatusOr<v1::ApplyRequest> MakeRequest(const ApplyArguments& a, ScenarioInput& input) {
  if (auto set = SetPace(a.pace, input.message); !set.ok()) return set;
  if (auto inlined = InlineFiles(&input.message, input.directory); !inlined.ok()) return inlined;
  v1::ApplyRequest request;
  *request.mutable_scenario() = input.message;
  request.set_hold(a.hold);
  request.set_wait_endpoints(a.wait_endpoints);
  for (std::uint64_t nodes : a.placement) request.add_nodes_per_process(nodes);
  return request;
}

void PrintApplied(const v1::ApplyReply& reply, bool json) {
  if (json) {
    fmt::print("{}\n", nlohmann::json{{"run", reply.run()},
                                      {"nodes", reply.nodes()},
                                      {"blades", reply.blades()},
                                      {"crossbars", reply.crossbars()},
                                      {"processes", reply.processes()},
                                      {"lookahead_ps", reply.lookahead()},
                                      {"lookahead_source", reply.lookahead_source()},
                                      {"wall_configure_seconds", reply.wall_configure_seconds()}}
                           .dump(2));
    return;
  }
  const std::string text =
      fmt::format("run {}: {} on {}, ready after {}; lookahead {} ({})", reply.run(),
                  FormatNodes(reply.nodes(), reply.blades(), reply.crossbars()),
                  Counted(reply.processes(), "daemon"), FormatWall(reply.wall_configure_seconds()),
                  FormatVirtual(reply.lookahead()), reply.lookahead_source());
  fmt::print("{}\n", Hanging(text, 0));
}

absl::StatusOr<v1::ApplyReply> Build(FabricClient& client, const v1::ApplyRequest& request,
                                     FabricClient::Duration timeout, bool progress) {
  const WaitingLine line("the daemons build the machine", progress);
  return client.Apply(request, timeout);
}

Outcome Apply(const ApplyArguments& a) {
  const auto timeout = ParseWallTime(a.timeout);
  if (!timeout.ok()) return Outcome::Fail(ExitCode::kUsage, "--timeout: " + Text(timeout.status()));
  auto input = LoadScenario(a.file, a.settings, a.seed);
  if (!input.ok()) return FromStatus(input.status());
  if (auto status = CheckLoaded(a.file, input->scenario, RunsOn::kDaemons); !status.ok())
    return FromStatus(status);
  const auto request = MakeRequest(a, *input);
  if (!request.ok()) return FromStatus(request.status());
  return WithFabric(a.fabric, [&](FabricClient& client) {
    const auto reply = Build(client, *request, *timeout, a.progress);
    if (!reply.ok()) return FromStatus(reply.status());
    const bool json = IsJson(a.fabric.format);
    if (!a.wait || !json) PrintApplied(*reply, json);
    return a.wait ? AwaitResult(client, reply->run(), input->scenario, a) : Outcome::Ok();
  });
}

Outcome Result(const ResultArguments& a) {
  return WithFabric(a.fabric, [&](FabricClient& client) {
    const auto reply = a.wait ? client.WatchRun(a.run, [](const v1::RunProgress&) { return true; })
                              : client.GetResult(a.run);
    if (!reply.ok()) return RunError(reply.status());
    const auto topology = TopologyFromProto(reply->topology(), reply->blades());
    if (!topology.ok()) return FromStatus(topology.status());
    return PrintResult(*reply, *topology, IsJson(a.fabric.format));
  });
}

}  // namespace

CommandBody AddApply(CLI::App& app) {
  auto a = std::make_shared<ApplyArguments>();
  app.add_option("FILE", a->file, "Scenario: .yaml, .json or .textproto")->required();
  app.add_flag("--wait", a->wait, "Wait for the end and print the report");
  app.add_flag("--hold", a->hold,
               "Keep the run alive when it has no work left, until `percsctl stop`");
  app.add_option("--wait-endpoints", a->wait_endpoints,
                 "Start virtual time when this many programs are attached to windows");
  app.add_option("--pace", a->pace,
                 "Virtual time per wall second, like 1us/s; max: as fast as possible");
  app.add_option("--placement", a->placement,
                 "Hubs per daemon, like 8,8,8,8; default: blocks of equal size")
      ->delimiter(',');
  AddSettingOptions(app, a->settings, a->seed);
  app.add_option("--timeout", a->timeout, "Time limit for building the machine")
      ->capture_default_str();
  AddProgressOption(app, a->progress);
  AddFabricOptions(app, a->fabric);
  return [a] { return Apply(*a); };
}

CommandBody AddResult(CLI::App& app) {
  auto a = std::make_shared<ResultArguments>();
  app.add_option("--run", a->run, "Number of the run; default: the last run that ended");
  app.add_flag("--wait", a->wait, "Wait for the run to end");
  AddFabricOptions(app, a->fabric);
  return [a] { return Result(*a); };
}

}  // namespace percs
