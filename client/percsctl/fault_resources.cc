// percsctl fault create, update, preview, list, get, delete, reset: faults as resources. Their
// options are the fields of percs.v1.Injection and FaultSelector, written as in a scenario file.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "client/lib/interrupt.h"
#include "client/percsctl/command.h"
#include "client/percsctl/fabric_options.h"
#include "client/percsctl/fault.h"
#include "client/percsctl/field_options.h"
#include "client/percsctl/format.h"
#include "percs/v1/scenario.pb.h"

namespace percs {
namespace {

using Json = nlohmann::json;

constexpr const char* kDuration = "duration";

struct ResourceArguments {
  FabricOptions fabric;
  std::string id, at, lease;
  std::vector<std::string> command;
  FieldTexts select, inject;
};
using Arguments = std::shared_ptr<ResourceArguments>;

Outcome Wrong(const std::string& message) { return Outcome::Fail(ExitCode::kUsage, message); }

Outcome BuildFault(const ResourceArguments& a, v1::Fault* fault) {
  Time at = -1;
  if (Outcome outcome = AwaitTime(a.at, at); outcome.code != ExitCode::kOk) return outcome;
  fault->set_id(a.id);
  if (at >= 0) fault->set_at(at);
  v1::Injection* inject = fault->mutable_inject();
  if (Outcome outcome = SetFieldTexts(a.inject, inject); outcome.code != ExitCode::kOk)
    return outcome;
  return SetFieldTexts(a.select, inject->mutable_select());
}

std::string TimesText(std::uint64_t count, bool known, Time at) {
  if (count == 0 || !known) return "-";
  return count == 1 ? FormatVirtual(at) : fmt::format("{} ({} times)", FormatVirtual(at), count);
}

Json Optional(bool known, std::int64_t value) { return known ? Json(value) : Json(); }

// What the fault does next and when, if that takes more than a minute by the wall clock.
std::string LongWait(const v1::FaultReply& reply) {
  const v1::FaultStatus& f = reply.fault();
  if (!f.has_next_at()) return "";
  const Time wait = f.next_at() - reply.at();
  const std::string wall = FormatLongWait(wait, reply.pace());
  if (wall.empty()) return "";
  return fmt::format("{} in {}{}\n", f.injections() == 0 ? "begins" : "changes next",
                     FormatVirtual(wait), wall);
}

Outcome Print(const FabricOptions& fabric, const char* verb, FabricClient::Duration lease,
              const v1::FaultReply& reply) {
  FaultList one;
  *one.Add() = reply.fault();
  if (IsJson(fabric.format)) {
    Json json{{"at_ps", reply.at()}, {"fault", FaultsJson(one)[0]}};
    if (lease.count() > 0) json["lease_wall_ms"] = lease.count();
    fmt::print("{}\n", json.dump(2));
  } else {
    fmt::print("fault {} {} at {}\n{}{}", reply.fault().id(), verb, FormatVirtual(reply.at()),
               FaultsText(one), LongWait(reply));
    if (lease.count() > 0)
      fmt::print("its lease expires in {} ms of wall time, unless it is renewed\n", lease.count());
  }
  return Outcome::Ok();
}

// Runs a program and returns its exit status, as a shell says it; calls `meanwhile` every few
// seconds.
int RunProgram(const std::vector<std::string>& command, const std::function<void()>& meanwhile) {
  constexpr auto kPoll = std::chrono::milliseconds(20),
                 kMeanwhile = std::chrono::milliseconds(2'000);
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  pid_t pid = 0;
  if (const int error = posix_spawnp(&pid, words[0], nullptr, nullptr, words.data(), environ);
      error != 0) {
    fmt::print(stderr, "percsctl fault: cannot run {}: {}\n", command[0], std::strerror(error));
    return error == ENOENT ? 127 : 126;
  }
  auto next = std::chrono::steady_clock::now() + kMeanwhile;
  int status = 0;
  while (waitpid(pid, &status, WNOHANG) == 0) {
    std::this_thread::sleep_for(kPoll);
    if (std::chrono::steady_clock::now() < next) continue;
    meanwhile();
    next += kMeanwhile;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// NOT_FOUND becomes OK.
absl::Status CheckNew(FabricClient& client, const std::string& id) {
  const auto known = client.ListFaults(id);
  if (absl::IsNotFound(known.status())) return absl::OkStatus();
  if (!known.ok()) return known.status();
  return absl::AlreadyExistsError(
      fmt::format("a fault \"{}\" exists already, and this command would delete it at the end; "
                  "delete it first, or choose another name",
                  id));
}

// The fault exists while the program runs; a lease ends it if this process dies. The exit status is
// the program's, whatever happens to the fault.
Outcome During(const ResourceArguments& a, const v1::Fault& fault) {
  constexpr FabricClient::Duration kLease(10'000);
  return WithFabric(a.fabric, [&](FabricClient& client) {
    if (absl::Status status = CheckNew(client, a.id); !status.ok()) return FromStatus(status);
    const auto reply = client.CreateFault(fault, kLease);
    if (!reply.ok()) return FromStatus(reply.status());
    InterruptGuard interrupt;  // Ctrl-C ends the program, and then the fault
    const int status =
        RunProgram(a.command, [&] { client.HoldFault(a.id).status().IgnoreError(); });
    const auto gone = client.DeleteFault(a.id);
    if (gone.ok()) {
      fmt::print(stderr, "fault {}: from {} to {}\n", a.id, FormatVirtual(reply->at()),
                 FormatVirtual(gone->at()));
    } else if (absl::IsNotFound(gone.status())) {
      fmt::print(stderr, "fault {}: from {}; it was deleted before the program ended\n", a.id,
                 FormatVirtual(reply->at()));
    } else {
      fmt::print(stderr,
                 "fault {}: from {}; it could not be deleted and ends when its lease expires, "
                 "within {} s: {}\n",
                 a.id, FormatVirtual(reply->at()), kLease.count() / 1000, Text(gone.status()));
    }
    return Outcome{static_cast<ExitCode>(status), ""};
  });
}

absl::StatusOr<FabricClient::Duration> ParseLease(const char* option, const std::string& text) {
  const auto span = ParseWallTime(text);
  if (!span.ok())
    return absl::InvalidArgumentError(fmt::format("{}: {}", option, Text(span.status())));
  if (span->count() > 0) return *span;
  return absl::InvalidArgumentError(
      fmt::format("{}: {} is less than a millisecond; write wall:1ms or more", option, text));
}

// Takes the options that are wall time out of `a`. A duration is a lease that is not
// renewed: the controller deletes the fault, and the journal has the virtual time of that.
Outcome TakeWallTimes(ResourceArguments& a, bool update, FabricClient::Duration& lease) {
  std::string& duration = a.inject[kDuration];
  const bool wall = IsWall(duration);
  if (!a.command.empty()) {
    if (!a.lease.empty()) {
      return Wrong("--lease: the fault lasts as long as COMMAND runs; leave --lease out");
    }
    if (wall)
      return Wrong("--duration " + duration +
                   ": the fault lasts as long as COMMAND runs; leave --duration out");
    if (IsJson(a.fabric.format))
      return Wrong("--format json: COMMAND writes to standard output; leave --format out");
  }
  if (wall && update) {
    return Wrong(
        fmt::format("--duration {0}: only `fault create` takes a wall-clock duration; write a "
                    "virtual one, or delete the fault and create it again with --duration {0}",
                    duration));
  }
  if (wall && !a.lease.empty()) {
    return Wrong("--duration " + duration + " sets a lease that is not renewed; leave --lease out");
  }
  if (wall && !a.at.empty() && !IsWall(a.at)) {
    return Wrong(fmt::format(
        "--duration {}: a wall-clock duration counts from now, but with --at {} the fault may "
        "begin later; write a virtual duration, or a wall-clock --at (wall:5s)",
        duration, a.at));
  }
  if (!wall && a.lease.empty()) return Outcome::Ok();
  const auto span = wall ? ParseLease("--duration", duration) : ParseLease("--lease", a.lease);
  if (!span.ok()) return Wrong(Text(span.status()));
  lease = *span;
  if (wall) duration.clear();
  return Outcome::Ok();
}

Outcome Set(ResourceArguments a, bool update) {
  FabricClient::Duration lease(0);
  if (Outcome outcome = TakeWallTimes(a, update, lease); outcome.code != ExitCode::kOk)
    return outcome;
  v1::Fault fault;
  if (Outcome outcome = BuildFault(a, &fault); outcome.code != ExitCode::kOk) return outcome;
  if (!a.command.empty()) return During(a, fault);
  return WithFabric(a.fabric, [&](FabricClient& client) {
    const auto reply = update ? client.UpdateFault(fault) : client.CreateFault(fault, lease);
    return reply.ok() ? Print(a.fabric, update ? "updated" : "created", lease, *reply)
                      : FromStatus(reply.status());
  });
}

Json PreviewJson(const v1::FaultPreview& p) {
  const auto names = [](const auto& list) {
    return std::vector<std::string>(list.begin(), list.end());
  };
  return {{"targets", names(p.targets())},
          {"selected", p.selected()},
          {"seed", p.seed()},
          {"pairs", p.pairs()},
          {"pair_names", names(p.pair_names())},
          {"routes", p.routes()},
          {"pairs_unreachable", p.pairs_unreachable()},
          {"trees", names(p.trees())},
          {"hubs_cut_off", names(p.hubs_cut_off())},
          {"windows", p.windows()},
          {"jobs", names(p.jobs())},
          {"loses_packets", p.loses_packets()}};
}

std::string PreviewText(const v1::FaultPreview& p) {
  const auto line = [](const char* what, std::uint64_t count, const auto& names) {
    const bool more = count > static_cast<std::uint64_t>(names.size());
    return fmt::format("{:<13} {}{}{}{}\n", what, FormatCount(count), names.empty() ? "" : ": ",
                       fmt::join(names, ", "), more && !names.empty() ? ", ..." : "");
  };
  std::string text = line("places", p.selected(), p.targets());
  text += fmt::format("{:<13} {}\n", "seed", p.seed());
  text += line("pairs", p.pairs(), p.pair_names());
  text += fmt::format("{:<13} {} of these pairs; every choice counts as one\n", "routes",
                      FormatCount(p.routes()));
  text += line("trees", static_cast<std::uint64_t>(p.trees_size()), p.trees());
  text += line("hubs cut off", static_cast<std::uint64_t>(p.hubs_cut_off_size()), p.hubs_cut_off());
  text += fmt::format("{:<13} {} of these hubs\n", "windows", FormatCount(p.windows()));
  text += line("jobs", static_cast<std::uint64_t>(p.jobs_size()), p.jobs());
  text += fmt::format("{:<13} {}\n", "unreachable",
                      FormatCount(p.pairs_unreachable()) + " pairs, even after a reroute");
  return text + fmt::format("{:<13} {}\n", "packets",
                            p.loses_packets() ? "are dropped there" : "are delayed");
}

Outcome Preview(ResourceArguments a) {
  v1::Fault fault;
  if (IsWall(a.inject[kDuration]))
    a.inject[kDuration].clear();  // how long it lasts does not change what it touches
  if (Outcome outcome = BuildFault(a, &fault); outcome.code != ExitCode::kOk) return outcome;
  fault.clear_at();
  return WithFabric(a.fabric, [&](FabricClient& client) {
    const auto reply = client.PreviewFault(fault);
    if (!reply.ok()) return FromStatus(reply.status());
    fmt::print("{}", IsJson(a.fabric.format) ? PreviewJson(reply->preview()).dump(2) + "\n"
                                             : PreviewText(reply->preview()));
    return Outcome::Ok();
  });
}

Outcome List(const ResourceArguments& a) {
  return WithFabric(a.fabric, [&](FabricClient& client) {
    const auto reply = client.ListFaults(a.id);
    if (!reply.ok()) return FromStatus(reply.status());
    if (IsJson(a.fabric.format)) {
      fmt::print(
          "{}\n",
          Json{{"virtual_ps", reply->virtual_time()}, {"faults", FaultsJson(reply->faults())}}.dump(
              2));
    } else {
      fmt::print("{}", FaultsText(reply->faults()));
    }
    return Outcome::Ok();
  });
}

Outcome Delete(const ResourceArguments& a) {
  return WithFabric(a.fabric, [&](FabricClient& client) {
    const auto reply = client.DeleteFault(a.id);
    if (!reply.ok()) return FromStatus(reply.status());
    if (IsJson(a.fabric.format)) {
      fmt::print("{}\n", Json{{"at_ps", reply->at()}, {"deleted", a.id}}.dump(2));
    } else {
      fmt::print("fault {} deleted at {}; it was {}\n", a.id, FormatVirtual(reply->at()),
                 reply->fault().phase());
    }
    return Outcome::Ok();
  });
}

Outcome Hold(const ResourceArguments& a) {
  return WithFabric(a.fabric, [&](FabricClient& client) {
    const auto reply = client.HoldFault(a.id);
    if (!reply.ok()) return FromStatus(reply.status());
    if (IsJson(a.fabric.format)) {
      fmt::print("{}\n", Json{{"fault", a.id}, {"lease_wall_ms", reply->lease_wall_ms()}}.dump(2));
    } else {
      fmt::print("lease of fault {} renewed for {} ms\n", a.id, reply->lease_wall_ms());
    }
    return Outcome::Ok();
  });
}

Outcome Reset(const ResourceArguments& a) {
  return WithFabric(a.fabric, [&](FabricClient& client) {
    const auto reply = client.ResetFaults();
    if (!reply.ok()) return FromStatus(reply.status());
    if (IsJson(a.fabric.format)) {
      fmt::print("{}\n", Json{{"at_ps", reply->at()}, {"deleted", reply->deleted()}}.dump(2));
    } else {
      fmt::print("{} deleted at {}\n", Counted(reply->deleted(), "fault"),
                 FormatVirtual(reply->at()));
    }
    return Outcome::Ok();
  });
}

Arguments AddResource(CLI::App& app, const char* name, const char* summary, bool with_fault) {
  auto a = std::make_shared<ResourceArguments>();
  CLI::App* sub = app.add_subcommand(name, summary);
  auto* id = sub->add_option("ID", a->id, "Name of the fault");
  if (with_fault) {
    id->required();
    sub->add_option("--at", a->at,
                    "Virtual time (40us), or a wait on the wall clock (wall:5s); default: now");
    AddFieldOptions(*sub, v1::Injection::descriptor(), &a->inject);
    AddFieldOptions(*sub, v1::FaultSelector::descriptor(), &a->select);
    CLI::Option* const duration = sub->get_option("--duration");
    duration->description(duration->get_description() +
                          " `fault create` also takes a wall-clock duration: wall:30s.");
    sub->footer(
        fmt::format("Examples:\n  percsctl fault {0} cut --kind link_down --link sn0-d0-h0:LR0\n"
                    "  percsctl fault {0} storm --kind bit_errors --flit-error-rate 1e-3 \\\n"
                    "      --link-class lr --mode percent --percent 10 --duration 100us",
                    name));
  }
  AddFabricOptions(*sub, a->fabric);
  return a;
}

}  // namespace

Json FaultsJson(const FaultList& faults) {
  Json json = Json::array();
  for (const v1::FaultStatus& f : faults) {
    json.push_back(
        {{"id", f.id()},
         {"number", f.number()},
         {"kind", f.kind()},
         {"phase", f.phase()},
         {"seed", f.seed()},
         {"selected", f.selected()},
         {"targets", std::vector<std::string>(f.targets().begin(), f.targets().end())},
         {"selected_at_ps", f.selected_at()},
         {"begins_at_ps", f.begins_at()},
         {"injections", f.injections()},
         {"injected_at_ps", Optional(f.has_injected_at(), f.injected_at())},
         {"recoveries", f.recoveries()},
         {"recovered_at_ps", Optional(f.has_recovered_at(), f.recovered_at())},
         {"next_at_ps", Optional(f.has_next_at(), f.next_at())},
         {"detected_at_ps", Optional(f.has_detected_at(), f.detected_at())},
         {"alerted_at_ps", Optional(f.has_alerted_at(), f.alerted_at())},
         {"planned_at_ps", Optional(f.has_planned_at(), f.planned_at())},
         {"committed_at_ps", Optional(f.has_committed_at(), f.committed_at())},
         {"first_packet_at_ps", Optional(f.has_first_packet_at(), f.first_packet_at())},
         {"epoch", Optional(f.has_epoch(), f.epoch())},
         {"packets_lost",
          Optional(f.has_packets_lost(), static_cast<std::int64_t>(f.packets_lost()))},
         {"packets_resent",
          Optional(f.has_packets_resent(), static_cast<std::int64_t>(f.packets_resent()))},
         {"replays", Optional(f.has_replays(), static_cast<std::int64_t>(f.replays()))}});
  }
  return json;
}

// The response to each fault, and its cost; nothing if neither is known.
std::string AnswersText(const FaultList& faults) {
  Table table({"fault", "detected", "alerted", "planned", "committed", "first packet", "lost",
               "resent", "replays"},
              "llllllrrr");
  bool any = false;
  const auto time = [](bool known, Time at) {
    return known ? FormatVirtual(at) : std::string("-");
  };
  for (const v1::FaultStatus& f : faults) {
    if (!f.has_detected_at() && !f.has_packets_lost()) continue;
    any = true;
    table.Add({f.id(), time(f.has_detected_at(), f.detected_at()),
               time(f.has_alerted_at(), f.alerted_at()), time(f.has_planned_at(), f.planned_at()),
               time(f.has_committed_at(), f.committed_at()),
               time(f.has_first_packet_at(), f.first_packet_at()),
               f.has_packets_lost() ? FormatCount(f.packets_lost()) : "-",
               f.has_packets_resent() ? FormatCount(f.packets_resent()) : "-",
               f.has_replays() ? FormatCount(f.replays()) : "-"});
  }
  return any ? "\n" + table.ToString() : "";
}

std::string FaultsText(const FaultList& faults) {
  constexpr int kTargetsShown = 3;
  Table table(
      {"fault", "kind", "phase", "places", "injected", "recovered", "next", "seed", "where"},
      "lllrlllrl");
  for (const v1::FaultStatus& f : faults) {
    std::string where;
    for (int i = 0; i < std::min(f.targets_size(), kTargetsShown); ++i)
      where += (i > 0 ? ", " : "") + f.targets(i);
    if (f.selected() > kTargetsShown) where += ", ...";
    table.Add({f.id(), f.kind(), f.phase(), FormatCount(f.selected()),
               TimesText(f.injections(), f.has_injected_at(), f.injected_at()),
               TimesText(f.recoveries(), f.has_recovered_at(), f.recovered_at()),
               f.has_next_at() ? FormatVirtual(f.next_at()) : "-", fmt::format("{}", f.seed()),
               where});
  }
  return table.empty() ? "no faults\n" : table.ToString() + AnswersText(faults);
}

std::function<std::optional<Outcome>()> AddFaultResources(CLI::App& app) {
  const auto create = AddResource(app, "create", "Create a fault", true);
  const auto update = AddResource(app, "update", "Replace a fault's settings", true);
  const auto preview =
      AddResource(app, "preview", "Show what a fault would affect, without injecting it", true);
  const auto list = AddResource(app, "list", "List faults and their phases", false);
  const auto get = AddResource(app, "get", "Show one fault", false);
  const auto remove = AddResource(app, "delete", "Delete a fault; a fault in force ends", false);
  const auto reset = AddResource(app, "reset", "Delete all faults", false);
  const auto hold = AddResource(app, "hold", "Renew the lease of a fault", false);
  app.get_subcommand("hold")->get_option("ID")->required();
  app.get_subcommand("create")->add_option(
      "--lease", create->lease,
      "Delete the fault when its lease is not renewed for this long: wall:30s");
  app.get_subcommand("create")->add_option(
      "COMMAND", create->command,
      "After --: a program to run; the fault is deleted when the program ends");
  app.get_subcommand("get")->get_option("ID")->required();
  app.get_subcommand("delete")->get_option("ID")->required();
  return
      [&app, create, update, preview, list, get, remove, reset, hold]() -> std::optional<Outcome> {
        if (app.got_subcommand("create")) return Set(*create, false);
        if (app.got_subcommand("update")) return Set(*update, true);
        if (app.got_subcommand("preview")) return Preview(*preview);
        if (app.got_subcommand("list")) return List(*list);
        if (app.got_subcommand("get")) return List(*get);
        if (app.got_subcommand("delete")) return Delete(*remove);
        if (app.got_subcommand("reset")) return Reset(*reset);
        if (app.got_subcommand("hold")) return Hold(*hold);
        return std::nullopt;
      };
}

}  // namespace percs
