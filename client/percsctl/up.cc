// percsctl up, down, ps: fabrics of processes on this machine.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>

#include "client/lib/interrupt.h"
#include "client/lib/local_fabric.h"
#include "client/lib/scenario_file.h"
#include "client/percsctl/command.h"
#include "client/percsctl/fabric_options.h"
#include "client/percsctl/format.h"
#include "client/percsctl/progress.h"
#include "client/percsctl/screen.h"

namespace percs {
namespace {

using Json = nlohmann::json;
using SteadyClock = std::chrono::steady_clock;

constexpr int kDaemonsDefault = 32;
constexpr int kDaemonsMax = 4096;
constexpr char kNoPage[] = "off", kPageDefault[] = "127.0.0.1:0";

struct UpArguments {
  StartOptions start;
  std::string file, format, timeout = "wall:60s", loss_deadline;
  int daemons = 0;
  bool progress = false;
};

struct DownArguments {
  FabricOptions fabric;
  std::string grace = "wall:10s";
  bool all = false;
};

double SecondsSince(SteadyClock::time_point start) {
  return std::chrono::duration<double>(SteadyClock::now() - start).count();
}

Outcome LocalFailure(const absl::Status& status) {
  Outcome outcome = FromStatus(status);
  if (outcome.code == ExitCode::kUnreachable) outcome.code = ExitCode::kFailed;
  return outcome;
}

Json RecordJson(const FabricRecord& record) {
  Json processes = Json::array();
  for (const FabricProcess& p : record.processes) {
    processes.push_back(
        {{"role", p.role}, {"pid", p.id.pid}, {"running", IsRunning(p.id)}, {"log", p.log}});
  }
  return {{"name", record.name},         {"transport", record.transport},
          {"tls", record.tls},           {"controller", record.controller},
          {"metrics", record.metrics},   {"page", record.page},
          {"scenario", record.scenario}, {"processes", std::move(processes)}};
}

// Number of daemons: the given one, or one per hub and blade of the scenario, or the default.
absl::StatusOr<int> DaemonsFor(const UpArguments& a) {
  if (a.file.empty()) return a.daemons > 0 ? a.daemons : kDaemonsDefault;
  const auto input = LoadScenario(a.file, {}, std::nullopt);
  if (!input.ok()) return input.status();
  const auto topology = Topology::Create(input->scenario.topology);
  if (!topology.ok()) return topology.status();
  const int nodes = static_cast<int>(topology->nodes());
  if (a.daemons > nodes) {
    return absl::InvalidArgumentError(fmt::format(
        "--daemons {}: {} has only {}; every daemon needs at least one", a.daemons, a.file,
        FormatNodes(topology->nodes(), topology->blades(), topology->crossbars())));
  }
  if (a.daemons == 0 && nodes > kDaemonsMax) {
    return absl::InvalidArgumentError(fmt::format(
        "{} has {}; say with --daemons (at most {}) how many processes share them", a.file,
        FormatNodes(topology->nodes(), topology->blades(), topology->crossbars()), kDaemonsMax));
  }
  return a.daemons > 0 ? a.daemons : nodes;
}

Outcome Up(UpArguments& a) {
  const auto timeout = ParseWallTime(a.timeout);
  if (!timeout.ok()) return Outcome::Fail(ExitCode::kUsage, "--timeout: " + Text(timeout.status()));
  if (!a.loss_deadline.empty()) {
    const auto deadline = ParseWallTime(a.loss_deadline);
    if (!deadline.ok())
      return Outcome::Fail(ExitCode::kUsage, "--loss-deadline: " + Text(deadline.status()));
    if (deadline->count() < 1)
      return Outcome::Fail(ExitCode::kUsage, "--loss-deadline: write at least wall:1ms");
    a.start.loss_deadline = *deadline;
  }
  const auto store = FabricStore::Open();
  if (!store.ok()) return FromStatus(store.status());
  const auto daemons = DaemonsFor(a);
  if (!daemons.ok()) return FromStatus(daemons.status());
  if (a.start.port != 0) a.start.tcp = true;
  if (a.start.page == kNoPage) a.start.page.clear();
  a.start.daemons = *daemons;
  a.start.scenario = a.file;
  a.start.timeout = *timeout;
  a.start.cancelled = [] { return InterruptGuard::raised(); };
  InterruptGuard interrupt;
  const auto start = SteadyClock::now();
  const auto record = [&] {
    const WaitingLine line(
        fmt::format("starting {}", Counted(static_cast<std::uint64_t>(*daemons), "daemon")),
        a.progress);
    return StartFabric(*store, a.start);
  }();
  if (!record.ok()) return LocalFailure(record.status());
  if (IsJson(a.format)) {
    Json json = RecordJson(*record);
    json["wall_seconds"] = SecondsSince(start);
    fmt::print("{}\n", json.dump(2));
    return Outcome::Ok();
  }
  const std::string name = a.start.name == "default" ? "" : " --name " + a.start.name;
  const std::string text =
      fmt::format("fabric \"{}\" is up after {}: controller at {}, {} over {}", record->name,
                  FormatWall(SecondsSince(start)), record->controller,
                  Counted(static_cast<std::uint64_t>(*daemons), "daemon"), record->transport);
  fmt::print("{}\n", Hanging(text, 0));
  if (!record->metrics.empty()) {
    fmt::print("metrics: {}; /discovery there lists those of the daemons\n", record->metrics);
  }
  if (!record->page.empty()) fmt::print("page: {}\n", record->page);
  fmt::print("next: percsctl apply {}{} --wait\n      percsctl down{} stops the fabric\n",
             a.file.empty() ? "FILE" : a.file, name, name);
  return Outcome::Ok();
}

Outcome DownAll(const FabricStore& store, const std::vector<std::string>& names,
                const DownArguments& a, std::chrono::milliseconds grace) {
  Json list = Json::array();
  for (const std::string& name : names) {
    const auto report = StopFabric(store, name, grace);
    if (!report.ok()) return LocalFailure(report.status());
    if (IsJson(a.fabric.format)) {
      list.push_back({{"name", name},
                      {"stopped", report->stopped},
                      {"killed", report->killed},
                      {"gone", report->gone}});
      continue;
    }
    fmt::print("fabric \"{}\": {} stopped", name,
               report->stopped == 1 ? "1 process" : fmt::format("{} processes", report->stopped));
    if (report->killed > 0)
      fmt::print(", {} killed because they did not exit in time", report->killed);
    if (report->gone > 0) fmt::print(", {} had exited before", report->gone);
    fmt::print("\n");
  }
  if (IsJson(a.fabric.format)) fmt::print("{}\n", list.dump(2));
  if (!IsJson(a.fabric.format) && names.empty()) fmt::print("no local fabric to stop\n");
  return Outcome::Ok();
}

// Those that are not elsewhere.
std::vector<std::string> LocalNames(const FabricStore& store) {
  std::vector<std::string> names = store.Names();
  const auto elsewhere = [&](const std::string& name) {
    const auto record = store.Load(name);
    return record.ok() && record->remote();
  };
  names.erase(std::remove_if(names.begin(), names.end(), elsewhere), names.end());
  return names;
}

// The controller ends, and its daemons on all hosts with it.
Outcome DownElsewhere(const FabricOptions& fabric) {
  return WithFabric(fabric, [&fabric](FabricClient& client) {
    const auto reply = client.Shutdown();
    if (!reply.ok()) return FromStatus(reply.status());
    if (IsJson(fabric.format)) {
      fmt::print("{}\n", Json{{"controller", fabric.controller}, {"shut_down", true}}.dump(2));
    } else {
      fmt::print("controller at {} shuts the fabric down\n", fabric.controller);
    }
    return Outcome::Ok();
  });
}

Outcome Down(const DownArguments& a) {
  if (!a.fabric.controller.empty()) return DownElsewhere(a.fabric);
  const auto grace = ParseWallTime(a.grace);
  if (!grace.ok()) return Outcome::Fail(ExitCode::kUsage, "--grace: " + Text(grace.status()));
  const auto store = FabricStore::Open();
  if (!store.ok()) return FromStatus(store.status());
  return DownAll(*store, a.all ? LocalNames(*store) : std::vector<std::string>{a.fabric.name}, a,
                 *grace);
}

// The answer of its controller, or why there is none.
struct Seen {
  std::string state;
  Time virtual_time = -1;
};
Seen Look(const FabricRecord& record) {
  if (!record.remote() && record.running() == 0) return {"gone; `percsctl down` cleans it up"};
  if (record.controller.empty()) return {"starting"};
  const auto client = Connect(record);
  if (!client.ok()) return {Text(client.status())};
  (*client)->set_deadline(std::chrono::seconds(2));
  const auto reply = (*client)->Status();
  if (!reply.ok()) return {"the controller does not answer"};
  return {StateName(reply->state()), reply->scenario().empty() ? -1 : reply->virtual_time()};
}

std::string PidsText(const FabricRecord& record) {
  std::vector<std::string> pids;
  for (const FabricProcess& p : record.processes) {
    if (IsRunning(p.id)) pids.push_back(fmt::format("{}", p.id.pid));
  }
  constexpr std::size_t kShown = 6;
  if (pids.size() <= kShown) return fmt::format("{}", fmt::join(pids, " "));
  return fmt::format("{} ... {}", fmt::join(pids.begin(), pids.begin() + kShown - 2, " "),
                     pids.back());
}

Outcome Ps(const std::string& format) {
  const auto store = FabricStore::Open();
  if (!store.ok()) return FromStatus(store.status());
  Json list = Json::array();
  Table table({"name", "processes", "state", "time", "controller", "pids"}, "lrl");
  std::string pages;
  for (const std::string& name : store->Names()) {
    const auto record = store->Load(name);
    if (!record.ok()) {
      table.Add({name, "-", "record unreadable", "-", "-", "-"});
      continue;
    }
    const Seen seen = Look(*record);
    Json json = RecordJson(*record);
    json["state"] = seen.state;
    json["virtual_ps"] = seen.virtual_time < 0 ? Json() : Json(seen.virtual_time);
    list.push_back(std::move(json));
    table.Add({name, fmt::format("{}/{}", record->running(), record->processes.size()), seen.state,
               seen.virtual_time < 0 ? "-" : FormatVirtual(seen.virtual_time), record->controller,
               PidsText(*record)});
    if (record->running() > 0 && !record->page.empty())
      pages += fmt::format("page of {}: {}\n", name, record->page);
  }
  if (IsJson(format)) {
    fmt::print("{}\n", list.dump(2));
  } else if (table.empty()) {
    fmt::print("no local fabric; `percsctl up` starts one\n");
  } else {
    fmt::print("{}{}", table.ToString(), pages);
  }
  return Outcome::Ok();
}

}  // namespace

CommandBody AddUp(CLI::App& app) {
  auto a = std::make_shared<UpArguments>();
  a->start.page = kPageDefault;
  app.add_option("FILE", a->file,
                 "Scenario whose hubs and blades set the number of daemons (it is not started)");
  AddNameOption(app, a->start.name);
  app.add_option("--daemons", a->daemons,
                 "Number of percsd; default: one per hub and blade of FILE, or 32")
      ->check(CLI::Range(1, kDaemonsMax));
  app.add_flag("--tcp", a->start.tcp, "Loopback TCP instead of Unix sockets");
  app.add_option("--port", a->start.port,
                 "TCP port of the controller (implies --tcp); default: any free port")
      ->check(CLI::Range(1, 65535));
  app.add_flag("--tls", a->start.tls,
               "Mutual TLS between all processes and percsctl, with new identities");
  app.add_option(
      "--metrics", a->start.metrics,
      "HOST:PORT that serves the controller's metrics to Prometheus, and at /discovery the "
      "addresses of the daemons' metrics (port 0: any free port); default: no metrics");
  app.add_option("--page", a->start.page,
                 "HOST:PORT of a page with the live fabric for browsers (port 0: any free port); "
                 "off: no page")
      ->capture_default_str();
  app.add_option("--timeout", a->timeout, "Time limit for starting")->capture_default_str();
  app.add_option(
      "--loss-deadline", a->loss_deadline,
      "During a run: silence after which a daemon is declared lost and the run continues "
      "without it, like wall:60s; default: wall:10s in a live run; in other runs only a "
      "daemon whose process has exited is lost");
  AddProgressOption(app, a->progress);
  AddFormatOption(app, a->format);
  return [a] { return Up(*a); };
}

CommandBody AddDown(CLI::App& app) {
  auto a = std::make_shared<DownArguments>();
  AddFabricOptions(app, a->fabric);
  app.add_flag("--all", a->all, "Stop every local fabric")->excludes("--controller");
  app.add_option("--grace", a->grace, "Time that processes get to exit before they are killed")
      ->capture_default_str();
  return [a] { return Down(*a); };
}

CommandBody AddPs(CLI::App& app) {
  auto format = std::make_shared<std::string>();
  AddFormatOption(app, *format);
  return [format] { return Ps(*format); };
}

}  // namespace percs
