// percsctl fault: breaks, impairs and mends links and parts of blades of a running fabric, once and
// by command; faults as resources are in fault_resources.cc. percsctl stop: ends its workload.
#include "client/percsctl/fault.h"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
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

struct BladeFaultArguments {
  FabricOptions fabric;
  std::string place, at;
  double share = 0.5;
};

struct ImpairmentArguments {
  FabricOptions fabric;
  std::string link, from, at;
  double flit_rate = -1, bit_rate = -1;
  std::int64_t corrupt_next = 0;
  int lost = 0;
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

// Until the run has ended. A fabric whose virtual time is paused never drains.
absl::Status AwaitDrained(FabricClient& client) {
  std::optional<Time> paused_at;
  const auto result = client.WatchRun(0, [&](const v1::RunProgress& progress) {
    if (progress.state() == v1::FABRIC_STATE_PAUSED) paused_at = progress.virtual_time();
    return !paused_at.has_value();
  });
  if (!paused_at) return result.status();
  return absl::FailedPreconditionError(
      fmt::format("the workload is stopped, but virtual time is paused at {}, so the fabric cannot "
                  "drain; run `percsctl resume`, and `percsctl status` shows when it has",
                  FormatVirtual(*paused_at)));
}

}  // namespace

Outcome AwaitTime(const std::string& text, Time& at) {
  at = -1;
  if (text.empty()) return Outcome::Ok();
  const auto time = ParseUserTime(text);
  if (!time.ok()) return Outcome::Fail(ExitCode::kUsage, "--at: " + Text(time.status()));
  if (!time->wall) at = time->time;
  if (time->wall && !SleepWall(time->time)) {
    return Outcome::Fail(ExitCode::kInterrupted, "interrupted; no fault was injected");
  }
  return Outcome::Ok();
}

namespace {

// The wall time until then, if it is long.
std::string LongWait(FabricClient& client, Time at) {
  const auto status = client.Status();
  if (!status.ok()) return "";
  const Time pace = status->pace() > 0 ? status->pace() : static_cast<Time>(status->pace_reached());
  return FormatLongWait(at - status->virtual_time(), pace);
}

Outcome Inject(const FabricOptions& fabric, const std::string& when,
               v1::InjectFaultRequest request) {
  Time at = -1;
  if (Outcome outcome = AwaitTime(when, at); outcome.code != ExitCode::kOk) return outcome;
  request.set_now(at < 0);
  if (at >= 0) request.mutable_fault()->set_at(at);
  return WithFabric(fabric, [&](FabricClient& client) {
    const auto reply = client.InjectFault(request);
    if (!reply.ok()) return FromStatus(reply.status());
    if (IsJson(fabric.format)) {
      fmt::print("{}\n", nlohmann::json{{"fault", reply->what()}, {"at_ps", reply->at()}}.dump(2));
    } else {
      fmt::print("{} at {}{}\n", reply->what(), FormatVirtual(reply->at()),
                 LongWait(client, reply->at()));
    }
    return Outcome::Ok();
  });
}

Outcome InjectErrors(const ImpairmentArguments& a) {
  v1::InjectFaultRequest request;
  v1::LinkErrors* errors = request.mutable_fault()->mutable_link_errors();
  errors->set_link(a.link);
  if (!a.from.empty()) errors->set_from(a.from);
  if (a.corrupt_next > 0) {
    errors->set_corrupt_next(a.corrupt_next);
  } else if (a.bit_rate >= 0) {
    errors->set_bit_error_rate(a.bit_rate);
  } else {
    errors->set_flit_error_rate(a.flit_rate);
  }
  return Inject(a.fabric, a.at, request);
}

Outcome InjectLanes(const ImpairmentArguments& a) {
  v1::InjectFaultRequest request;
  v1::LanesLost* lanes = request.mutable_fault()->mutable_lanes_lost();
  lanes->set_link(a.link);
  if (!a.from.empty()) lanes->set_from(a.from);
  lanes->set_count(a.lost);
  return Inject(a.fabric, a.at, request);
}

Outcome Fault(const FaultArguments& a, bool up) {
  Time at = -1;
  if (Outcome outcome = AwaitTime(a.at, at); outcome.code != ExitCode::kOk) return outcome;
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
      fmt::print("link {} ({}) {} at {}{}\n", reply->link(), reply->ends(), state,
                 FormatVirtual(reply->at()), LongWait(client, reply->at()));
    }
    return Outcome::Ok();
  });
}

Outcome Stop(const StopArguments& a) {
  return WithFabric(a.fabric, [&](FabricClient& client) {
    const auto reply = client.Stop();
    if (!reply.ok()) return FromStatus(reply.status());
    if (a.wait) {
      if (absl::Status drained = AwaitDrained(client); !drained.ok()) return FromStatus(drained);
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

std::shared_ptr<ImpairmentArguments> AddImpairment(CLI::App& app, const char* name,
                                                   const char* summary, const char* example) {
  auto a = std::make_shared<ImpairmentArguments>();
  CLI::App* sub = app.add_subcommand(name, summary);
  sub->add_option("LINK", a->link,
                  "One end and its port (sn0-d0-h0:LR0) or both ends (sn0-d0-h0/sn0-d1-h0)")
      ->required();
  sub->add_option("--from", a->from, "Only the direction sent by this end; default: both");
  sub->add_option("--at", a->at,
                  "Virtual time (40us), or a wait on the wall clock (wall:5s); default: now");
  AddFabricOptions(*sub, a->fabric);
  sub->footer(fmt::format("Example:\n  percsctl fault {} {}", name, example));
  return a;
}

std::shared_ptr<ImpairmentArguments> AddErrors(CLI::App& app) {
  const auto a = AddImpairment(app, "link-errors", "Corrupt flits of a link; the link replays them",
                               "sn0-d0-h0:LR0 --from sn0-d0-h0 --flit-rate 1e-3");
  auto* kinds = app.get_subcommand("link-errors")->add_option_group("kind", "Exactly one of these");
  kinds
      ->add_option("--flit-rate", a->flit_rate,
                   "Probability that a flit is corrupted; 0 ends the fault")
      ->check(CLI::Range(0.0, 1.0));
  kinds->add_option("--bit-rate", a->bit_rate, "Probability for each of a flit's 1024 bits")
      ->check(CLI::Range(0.0, 1.0));
  kinds
      ->add_option("--corrupt-next", a->corrupt_next, "Corrupt this many of the next transmissions")
      ->check(CLI::Range(1, 1'000'000'000));
  kinds->require_option(1);
  return a;
}

std::shared_ptr<BladeFaultArguments> AddBladeFault(CLI::App& app, const char* name,
                                                   const char* summary, const char* place,
                                                   const char* example) {
  auto a = std::make_shared<BladeFaultArguments>();
  CLI::App* sub = app.add_subcommand(name, summary);
  sub->add_option("PLACE", a->place, place)->required();
  sub->add_option("--at", a->at,
                  "Virtual time (40us), or a wait on the wall clock (wall:5s); default: now");
  AddFabricOptions(*sub, a->fabric);
  sub->footer(fmt::format("Example:\n  percsctl fault {} {}", name, example));
  return a;
}

}  // namespace

CommandBody AddFault(CLI::App& app) {
  app.require_subcommand(1);
  const auto spe = AddBladeFault(app, "spe-down", "Take down an SPE of a blade",
                                 "The SPE, like blade0:SPE3", "blade0:SPE3 --at 80us");
  const auto ring = AddBladeFault(app, "eib-ring-lost", "Take down a data ring of a blade's bus",
                                  "The ring, like blade0:CELL1:RING2", "blade0:CELL1:RING2");
  const auto chip =
      AddBladeFault(app, "chip-link-degraded", "Slow down the link between the Cells of a blade",
                    "The blade", "blade0 --share 0.25");
  app.get_subcommand("chip-link-degraded")
      ->add_option("--share", chip->share, "Remaining share of its rate, above 0 and at most 1")
      ->capture_default_str();
  const auto down = AddLinkFault(app, "link-down", "Take down a link, in both directions");
  const auto up = AddLinkFault(app, "link-up", "Bring a link up");
  const auto errors = AddErrors(app);
  const auto lanes =
      AddImpairment(app, "lanes", "Take down lanes of a link", "sn0-d0-h0:D0 --lost 3");
  app.get_subcommand("lanes")
      ->add_option("--lost", lanes->lost,
                   "Number of lanes lost in total, spares included; 0 repairs the link")
      ->required()
      ->check(CLI::Range(0, 2048));
  const auto resources = AddFaultResources(app);
  return [&app, down, up, spe, ring, chip, errors, lanes, resources] {
    if (const auto outcome = resources()) return *outcome;
    if (app.got_subcommand("link-errors")) return InjectErrors(*errors);
    if (app.got_subcommand("lanes")) return InjectLanes(*lanes);
    v1::InjectFaultRequest request;
    if (app.got_subcommand("spe-down")) {
      request.mutable_fault()->set_spe_down(spe->place);
      return Inject(spe->fabric, spe->at, request);
    }
    if (app.got_subcommand("eib-ring-lost")) {
      request.mutable_fault()->set_eib_ring_lost(ring->place);
      return Inject(ring->fabric, ring->at, request);
    }
    if (app.got_subcommand("chip-link-degraded")) {
      request.mutable_fault()->mutable_chip_link_degraded()->set_blade(chip->place);
      request.mutable_fault()->mutable_chip_link_degraded()->set_share(chip->share);
      return Inject(chip->fabric, chip->at, request);
    }
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
