// percsctl process: kill, stop, continue and restart processes of a local fabric, and break the
// streams of a process of any. All of it is outside of virtual time.
#include <fmt/format.h>

#include <csignal>
#include <memory>
#include <nlohmann/json.hpp>

#include "client/lib/fabric_record.h"
#include "client/percsctl/command.h"
#include "client/percsctl/fabric_options.h"
#include "client/percsctl/format.h"

namespace percs {
namespace {

using Json = nlohmann::json;

constexpr std::chrono::milliseconds kNoGrace(0);

struct ProcessArguments {
  FabricOptions fabric;
  std::string process;
};

std::string NamesOf(const FabricRecord& record) {
  std::string names;
  for (const FabricProcess& p : record.processes) names += (names.empty() ? "" : ", ") + p.name();
  return names;
}

absl::StatusOr<FabricProcess*> Find(FabricRecord& record, const std::string& name) {
  for (FabricProcess& p : record.processes) {
    if (p.name() == name) return &p;
  }
  return absl::NotFoundError(fmt::format("fabric \"{}\" has no process {}; it has {}", record.name,
                                         name, NamesOf(record)));
}

absl::Status Signal(const FabricProcess& process, int number) {
  if (!IsRunning(process.id)) {
    return absl::FailedPreconditionError(
        fmt::format("{} (pid {}) is not running; `percsctl process restart` starts it again",
                    process.name(), process.id.pid));
  }
  kill(process.id.pid, number);
  return absl::OkStatus();
}

// On the same address and with the same flags as before; what ran is killed first.
absl::Status Restart(FabricProcess& process) {
  if (process.command.empty()) {
    return absl::FailedPreconditionError(
        "an older percsctl started it and recorded no command: run `percsctl down`, then `up`");
  }
  if (IsRunning(process.id)) {
    kill(process.id.pid, SIGKILL);
    StopProcesses({process.id}, kNoGrace);
  }
  const auto started = StartDetached(process.command, process.log);
  if (!started.ok()) return started.status();
  process.id = *started;
  return absl::OkStatus();
}

absl::Status Act(const std::string& action, FabricProcess& process) {
  if (action == "kill") return Signal(process, SIGKILL);
  if (action == "stop") return Signal(process, SIGSTOP);
  if (action == "continue") return Signal(process, SIGCONT);
  return Restart(process);
}

Outcome Run(const std::string& action, const ProcessArguments& a) {
  const auto store = FabricStore::Open();
  if (!store.ok()) return FromStatus(store.status());
  const auto known =
      store->Load(a.fabric.name);  // before the lock, which would make a folder for any name
  if (!known.ok()) return FromStatus(known.status());
  const auto lock = FabricLock::Take(*store, a.fabric.name);
  if (!lock.ok()) return FromStatus(lock.status());
  auto record = store->Load(a.fabric.name);
  if (!record.ok()) return FromStatus(record.status());
  const auto process = Find(*record, a.process);
  if (!process.ok()) return FromStatus(process.status());
  if (absl::Status status = Act(action, **process); !status.ok()) return FromStatus(status);
  if (absl::Status status = store->Save(*record); !status.ok()) return FromStatus(status);
  if (IsJson(a.fabric.format)) {
    fmt::print(
        "{}\n",
        Json{{"process", a.process}, {"action", action}, {"pid", (*process)->id.pid}}.dump(2));
  } else {
    fmt::print("{}: {}, pid {}\n", a.process, action, (*process)->id.pid);
  }
  return Outcome::Ok();
}

Outcome Break(const ProcessArguments& a) {
  return WithFabric(a.fabric, [&a](FabricClient& client) {
    const auto reply = client.BreakStreams(a.process);
    if (!reply.ok()) return FromStatus(reply.status());
    if (IsJson(a.fabric.format)) {
      fmt::print(
          "{}\n",
          Json{{"process", a.process}, {"action", "break"}, {"reconnects", reply->reconnects()}}
              .dump(2));
    } else {
      fmt::print("{}: streams broken; it had reconnected {} times before\n", a.process,
                 reply->reconnects());
    }
    return Outcome::Ok();
  });
}

}  // namespace

CommandBody AddProcess(CLI::App& app) {
  constexpr std::pair<const char*, const char*> kActions[] = {
      {"kill", "Kill a process, as a crash would"},
      {"stop", "Freeze a process"},
      {"continue", "Continue a process after `stop`"},
      {"restart", "Start a process again; a running one is killed first"}};
  app.require_subcommand(1);
  auto a = std::make_shared<ProcessArguments>();
  for (const auto& [name, summary] : kActions) {
    CLI::App* sub = app.add_subcommand(name, summary);
    sub->add_option("PROCESS", a->process, "controller, or a daemon: d0, d1, ...")->required();
    AddNameOption(*sub, a->fabric.name);
    AddFormatOption(*sub, a->fabric.format);
  }
  CLI::App* streams =
      app.add_subcommand("break", "Break a daemon's gRPC streams; they are reopened");
  streams->add_option("PROCESS", a->process, "A daemon, by its name in `percsctl status`")
      ->required();
  AddFabricOptions(*streams, a->fabric);
  return [&app, a] {
    const std::string action = app.get_subcommands().front()->get_name();
    return action == "break" ? Break(*a) : Run(action, *a);
  };
}

}  // namespace percs
