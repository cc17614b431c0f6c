// percsctl fault: breaks and mends links of a running fabric. percsctl stop: ends its workload.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "client/lib/interrupt.h"
#include "client/percsctl/command.h"
#include "client/percsctl/fabric_options.h"
#include "client/percsctl/format.h"

namespace percs {
namespace {

struct FaultArguments {
  FabricOptions fabric;
  std::string link, at;
};

struct StopArguments {
  FabricOptions fabric;
  bool wait = false;
};

// False if Ctrl-C came first.
bool SleepWall(Time picoseconds) {
  InterruptGuard interrupt;
  const auto end =
      std::chrono::steady_clock::now() + std::chrono::nanoseconds(picoseconds / kNanosecond);
  while (std::chrono::steady_clock::now() < end) {
    if (InterruptGuard::raised()) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

Outcome Fault(const FaultArguments& a, bool up) {
  Time at = -1;  // now
  if (!a.at.empty()) {
    const auto time = ParseUserTime(a.at);
    if (!time.ok()) return Outcome::Fail(ExitCode::kUsage, "--at: " + Text(time.status()));
    if (!time->wall) at = time->time;
    if (time->wall && !SleepWall(time->time)) {
      return Outcome::Fail(ExitCode::kInterrupted, "interrupted; no fault was injected");
    }
  }
  return WithFabric(a.fabric, [&](FabricClient& client) {
    const auto reply = client.InjectLinkFault(a.link, up, at);
    if (!reply.ok()) return FromStatus(reply.status());
    const char* state = up ? "up" : "down";
    if (IsJson(a.fabric.format)) {
      fmt::print("{}\n", nlohmann::json{{"link", reply->link()},
                                        {"ends", reply->ends()},
                                        {"state", state},
                                        {"at_ps", reply->at()}}
                             .dump(2));
    } else {
      fmt::print("link {} ({}) {} at {}\n", reply->link(), reply->ends(), state,
                 FormatVirtual(reply->at()));
    }
    return Outcome::Ok();
  });
}

Outcome Stop(const StopArguments& a) {
  return WithFabric(a.fabric, [&](FabricClient& client) {
    const auto reply = client.Stop();
    if (!reply.ok()) return FromStatus(reply.status());
    if (a.wait) {
      const auto result = client.WatchRun(0, [](const v1::RunProgress&) { return true; });
      if (!result.ok()) return FromStatus(result.status());
    }
    if (IsJson(a.fabric.format)) {
      fmt::print("{}\n", nlohmann::json{{"at_ps", reply->at()}, {"ended", a.wait}}.dump(2));
    } else {
      fmt::print("workload stopped at {}{}\n", FormatVirtual(reply->at()),
                 a.wait ? "; the fabric has drained" : "");
    }
    return Outcome::Ok();
  });
}

std::shared_ptr<FaultArguments> AddLinkFault(CLI::App& app, const char* name, const char* summary) {
  auto a = std::make_shared<FaultArguments>();
  CLI::App* sub = app.add_subcommand(name, summary);
  sub->add_option("LINK", a->link,
                  "One end and its port (sn0-d0-h0:LR0) or both ends (sn0-d0-h0/sn0-d1-h0)")
      ->required();
  sub->add_option("--at", a->at,
                  "Virtual time (40us), or a wait on the wall clock (wall:5s); default: now");
  AddFabricOptions(*sub, a->fabric);
  sub->footer(
      fmt::format("Examples:\n  percsctl fault {0} sn0-d0-h0/sn0-d1-h0\n"
                  "  percsctl fault {0} sn0-d0-h0:LR0 --at 80us",
                  name));
  return a;
}

}  // namespace

CommandBody AddFault(CLI::App& app) {
  app.require_subcommand(1);
  const auto down = AddLinkFault(app, "link-down", "The link dies, in both directions");
  const auto up = AddLinkFault(app, "link-up", "The link comes back");
  return [&app, down, up] {
    const bool is_up = app.got_subcommand("link-up");
    return Fault(is_up ? *up : *down, is_up);
  };
}

CommandBody AddStop(CLI::App& app) {
  auto a = std::make_shared<StopArguments>();
  app.add_flag("--wait", a->wait, "Wait until the fabric has drained");
  AddFabricOptions(app, a->fabric);
  return [a] { return Stop(*a); };
}

}  // namespace percs
