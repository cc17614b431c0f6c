// percsctl events: what happened to a running fabric. percsctl health: its problems. percsctl
// pause, resume, step, pace: its virtual time.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "client/lib/interrupt.h"
#include "client/percsctl/command.h"
#include "client/percsctl/fabric_options.h"
#include "client/percsctl/fault.h"
#include "client/percsctl/format.h"
#include "client/percsctl/progress.h"
#include "client/percsctl/report.h"
#include "proto/scenario/units.h"

namespace percs {
namespace {

using Json = nlohmann::json;

struct PaceArguments {
  FabricOptions fabric;
  std::string pace;
};

struct TimeArguments {
  FabricOptions fabric;
  std::string by;
  bool wait = false;
};

struct EventArguments {
  FabricOptions fabric;
  std::uint64_t after = 0;
  bool follow = false;
};

// One line each, so that a stream can be read as it comes.
void PrintBatch(const v1::EventBatch& batch, bool json) {
  if (batch.lost() > 0) {
    if (json) {
      fmt::print("{}\n",
                 Json{{"run", batch.run()}, {"kind", "gap"}, {"lost", batch.lost()}}.dump());
    } else {
      fmt::print("{:>6}  {:<16} {} earlier events are no longer kept\n", "", "gap", batch.lost());
    }
  }
  for (const v1::FabricEvent& e : batch.events()) {
    if (json) {
      fmt::print("{}\n", Json{{"run", batch.run()},
                              {"sequence", e.sequence()},
                              {"at_ps", e.at()},
                              {"kind", e.kind()},
                              {"subject", e.subject()},
                              {"text", e.text()}}
                             .dump());
    } else {
      fmt::print("{}", EventLine(e.sequence(), e.kind(), e.at(), e.subject(), e.text()));
    }
  }
  std::fflush(stdout);
}

Outcome Events(const EventArguments& a) {
  return WithFabric(a.fabric, [&](FabricClient& client) {
    InterruptGuard interrupt;
    const bool json = IsJson(a.fabric.format);
    int printed = 0;
    const absl::Status status =
        client.WatchEvents(a.after, a.follow, [&](const v1::EventBatch& batch) {
          if (!json && printed == 0 && batch.events_size() > 0) fmt::print("{}", EventHeader());
          printed += batch.events_size();
          PrintBatch(batch, json);
          return !InterruptGuard::raised();
        });
    if (!status.ok()) return FromStatus(status);
    if (!json && printed == 0) {
      fmt::print("{}\n", a.after == 0 ? std::string("no events so far")
                                      : fmt::format("no events after number {}", a.after));
    }
    return Outcome::Ok();
  });
}

std::vector<std::string> Names(const google::protobuf::RepeatedPtrField<std::string>& list) {
  return {list.begin(), list.end()};
}

Json ReroutesJson(const v1::HealthReply& h) {
  Json json = Json::array();
  for (const v1::Reroute& r : h.reroutes()) {
    json.push_back({{"epoch", r.epoch()},
                    {"down", Names(r.down())},
                    {"up", Names(r.up())},
                    {"damaged", Names(r.damaged())},
                    {"raised_ps", r.raised()},
                    {"alerted_ps", r.alerted()},
                    {"planning_started_ps", r.planning_started()},
                    {"planned_ps", r.planned()},
                    {"committed_ps", r.committed()},
                    {"hubs_changed", r.hubs_changed()},
                    {"unreachable_pairs", r.unreachable_pairs()}});
  }
  return json;
}

Json HealthJson(const v1::HealthReply& h) {
  return {{"virtual_ps", h.virtual_time()},
          {"healthy", h.healthy()},
          {"epoch", h.epoch()},
          {"links_down", Names(h.links_down())},
          {"links_short_of_lanes", Names(h.links_short_of_lanes())},
          {"hubs_cut_off", Names(h.hubs_cut_off())},
          {"unreachable_pairs", h.unreachable_pairs()},
          {"trees_not_ready", Names(h.trees_not_ready())},
          {"faults", FaultsJson(h.faults())},
          {"reroutes", ReroutesJson(h)},
          {"reroutes_count", h.reroutes_count()},
          {"packets_dropped", std::map<std::string, std::uint64_t>(h.packets_dropped().begin(),
                                                                   h.packets_dropped().end())},
          {"replays", h.replays()},
          {"packets_resent", h.packets_resent()}};
}

std::string HealthText(const v1::HealthReply& h) {
  std::string text =
      fmt::format("{} at {}, route tables of epoch {}\n", h.healthy() ? "healthy" : "degraded",
                  FormatVirtual(h.virtual_time()), h.epoch());
  const auto list = [&](const char* what,
                        const google::protobuf::RepeatedPtrField<std::string>& names) {
    if (!names.empty())
      text += fmt::format("{:<21} {}: {}\n", what, names.size(), fmt::join(names, ", "));
  };
  list("links down", h.links_down());
  list("links with lost lanes", h.links_short_of_lanes());
  list("hubs cut off", h.hubs_cut_off());
  list("trees not ready", h.trees_not_ready());
  if (h.unreachable_pairs() > 0)
    text += fmt::format("{:<21} {}\n", "unreachable", Counted(h.unreachable_pairs(), "pair"));
  std::string dropped;
  for (const auto& [reason, packets] : h.packets_dropped()) {
    dropped += fmt::format("{}{} {}", dropped.empty() ? "" : ", ", FormatCount(packets), reason);
  }
  text += fmt::format("{:<21} {}; {} replayed, {} resent\n", "packets dropped",
                      dropped.empty() ? "none" : dropped, Counted(h.replays(), "flit"),
                      Counted(h.packets_resent(), "packet"));
  if (!h.faults().empty()) text += "\n" + FaultsText(h.faults());
  Table table({"reroute", "links down", "up", "raised", "alerted", "planning", "planned",
               "committed", "hubs"},
              "lr");
  for (const v1::Reroute& r : h.reroutes()) {
    table.Add(
        {fmt::format("epoch {}", r.epoch()), FormatCount(static_cast<std::uint64_t>(r.down_size())),
         FormatCount(static_cast<std::uint64_t>(r.up_size())), FormatVirtual(r.raised()),
         FormatVirtual(r.alerted()), FormatVirtual(r.planning_started()),
         FormatVirtual(r.planned()), FormatVirtual(r.committed()), FormatCount(r.hubs_changed())});
  }
  return text + (table.empty() ? "" : "\n" + table.ToString());
}

Outcome PrintPause(const FabricOptions& fabric, const char* what,
                   const absl::StatusOr<v1::PauseReply>& reply, Time wait = 0) {
  if (!reply.ok()) return FromStatus(reply.status());
  if (IsJson(fabric.format)) {
    fmt::print("{}\n", Json{{"at_ps", reply->at()}}.dump(2));
  } else {
    fmt::print("{} {} (virtual){}\n", what, FormatTime(reply->at()),
               FormatLongWait(wait, reply->pace()));
  }
  return Outcome::Ok();
}

// Until virtual time is paused after a step, or the run is over before that.
absl::StatusOr<v1::StatusReply> AwaitPause(FabricClient& client, Time from, Time until) {
  constexpr auto kPoll = std::chrono::milliseconds(10);
  InterruptGuard interrupt;
  ProgressLine line(/*always=*/false);
  while (!InterruptGuard::raised()) {
    auto status = client.Status();
    if (!status.ok()) return status;
    if (status->state() != v1::FABRIC_STATE_RUNNING) return status;
    if (line.Due()) {
      line.Show(fmt::format("virtual time {} of {}", FormatTime(status->virtual_time(), 3),
                            FormatTime(until)),
                static_cast<double>(status->virtual_time() - from) /
                    static_cast<double>(std::max<Time>(until - from, 1)));
    }
    std::this_thread::sleep_for(kPoll);
  }
  return absl::CancelledError("no longer waiting; virtual time continues to the end of the step");
}

Outcome StepAndWait(const TimeArguments& a, Time by, FabricClient& client) {
  const auto step = client.StepTime(by);
  if (!step.ok()) return FromStatus(step.status());
  const auto status = AwaitPause(client, step->at() - by, step->at());
  if (!status.ok()) return FromStatus(status.status());
  const char* state = StateName(status->state());
  const Time now = status->virtual_time();
  if (IsJson(a.fabric.format)) {
    fmt::print("{}\n", Json{{"at_ps", step->at()}, {"state", state}, {"virtual_ps", now}}.dump(2));
  } else {
    fmt::print("{} at {} (virtual)\n", state, FormatTime(now));
  }
  if (!status->error().empty()) return Outcome::Fail(ExitCode::kFailed, status->error());
  return Outcome::Ok();
}

Outcome StepTime(const TimeArguments& a) {
  const auto by = ParseUserTime(a.by);
  if (!by.ok()) return Outcome::Fail(ExitCode::kUsage, "BY: " + Text(by.status()));
  if (by->wall) return Outcome::Fail(ExitCode::kUsage, "BY: a step is a virtual time, like 10us");
  return WithFabric(a.fabric, [&](FabricClient& client) {
    if (a.wait) return StepAndWait(a, by->time, client);
    return PrintPause(a.fabric, "advances, then pauses at", client.StepTime(by->time), by->time);
  });
}

Outcome SetPace(const PaceArguments& a) {
  std::int64_t pace = 0;
  if (a.pace != "max") {
    const auto read = ParseQuantity(Quantity::kPace, a.pace);
    if (!read.ok()) return Outcome::Fail(ExitCode::kUsage, "PACE: " + Text(read.status()));
    pace = *read;
  }
  const std::string told =
      pace == 0 ? "no pace limits virtual time from"
                : fmt::format("a pace of {} from", PrintQuantity(Quantity::kPace, pace));
  return WithFabric(a.fabric, [&](FabricClient& client) {
    return PrintPause(a.fabric, told.c_str(), client.SetPace(pace));
  });
}

}  // namespace

CommandBody AddPause(CLI::App& app) {
  auto a = std::make_shared<FabricOptions>();
  AddFabricOptions(app, *a);
  return [a] {
    return WithFabric(
        *a, [&](FabricClient& client) { return PrintPause(*a, "paused at", client.Pause()); });
  };
}

CommandBody AddResume(CLI::App& app) {
  auto a = std::make_shared<FabricOptions>();
  AddFabricOptions(app, *a);
  return [a] {
    return WithFabric(
        *a, [&](FabricClient& client) { return PrintPause(*a, "resumes at", client.Resume()); });
  };
}

CommandBody AddPace(CLI::App& app) {
  auto a = std::make_shared<PaceArguments>();
  app.add_option("PACE", a->pace, "Virtual time per wall second, like 20us/s; max: no limit")
      ->required();
  AddFabricOptions(app, a->fabric);
  return [a] { return SetPace(*a); };
}

CommandBody AddStep(CLI::App& app) {
  auto a = std::make_shared<TimeArguments>();
  app.add_option("BY", a->by, "Virtual time to advance, like 10us")->required();
  app.add_flag("--wait", a->wait, "Return when virtual time is paused there, or the run is over");
  AddFabricOptions(app, a->fabric);
  return [a] { return StepTime(*a); };
}

CommandBody AddEvents(CLI::App& app) {
  auto a = std::make_shared<EventArguments>();
  app.add_flag("--follow", a->follow, "Keep printing new events until Ctrl-C");
  app.add_option("--after", a->after, "Only events with a higher number")->capture_default_str();
  AddFabricOptions(app, a->fabric);
  return [a] { return Events(*a); };
}

CommandBody AddHealth(CLI::App& app) {
  auto a = std::make_shared<FabricOptions>();
  AddFabricOptions(app, *a);
  return [a] {
    return WithFabric(*a, [&](FabricClient& client) {
      const auto reply = client.GetHealth();
      if (!reply.ok()) return FromStatus(reply.status());
      fmt::print("{}", IsJson(a->format) ? HealthJson(*reply).dump(2) + "\n" : HealthText(*reply));
      return Outcome::Ok();
    });
  };
}

}  // namespace percs
