// percsctl status: what a fabric is doing.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "client/percsctl/command.h"
#include "client/percsctl/fabric_options.h"
#include "client/percsctl/fault.h"
#include "client/percsctl/format.h"
#include "proto/scenario/units.h"

namespace percs {
namespace {

using Json = nlohmann::json;

Json ProcessesJson(const v1::StatusReply& s) {
  Json json = Json::array();
  for (const v1::ProcessStatus& p : s.processes()) {
    json.push_back({{"process", p.process()},
                    {"name", p.name()},
                    {"pid", p.pid()},
                    {"link_address", p.link_address()},
                    {"connected", p.connected()},
                    {"wall_missing_seconds", p.wall_missing_seconds()},
                    {"wall_lost_in_seconds",
                     p.has_wall_lost_in_seconds() ? Json(p.wall_lost_in_seconds()) : Json()},
                    {"first_node", p.first_node()},
                    {"nodes", p.nodes()},
                    {"blades", p.blades()},
                    {"crossbars", p.crossbars()},
                    {"incarnation", std::max(p.incarnation(), 1u)},
                    {"rejoined_ps", p.incarnation() > 0 ? Json(p.rejoined_at()) : Json()},
                    {"reconnects", p.reconnects()},
                    {"windows", p.windows()}});
  }
  return json;
}

Json StatusJson(const v1::StatusReply& s) {
  return {{"state", StateName(s.state())},
          {"versions",
           {{"wire", s.versions().wire()},
            {"format", s.versions().format()},
            {"model", s.versions().model()},
            {"software", s.versions().software()}}},
          {"controller_pid", s.pid()},
          {"daemons_expected", s.daemons_expected()},
          {"processes", ProcessesJson(s)},
          {"error", s.error()},
          {"waits_for", s.waits_for()},
          {"scenario", s.scenario()},
          {"run", s.run()},
          {"nodes", s.nodes()},
          {"blades", s.blades()},
          {"crossbars", s.crossbars()},
          {"virtual_ps", s.virtual_time()},
          {"windows", s.windows()},
          {"windows_per_second", s.windows_per_second()},
          {"lookahead_ps", s.lookahead()},
          {"lookahead_source", s.lookahead_source()},
          {"epoch", s.epoch()},
          {"clock", s.clock() == v1::CLOCK_LIVE ? "live" : "batch"},
          {"pace_ps_per_wall_second", s.pace()},
          {"pace_reached", s.pace_reached()},
          {"wall_behind_seconds", s.wall_behind_seconds()},
          {"packets_delivered", s.packets_delivered()},
          {"unfinished", s.unfinished()},
          {"wall_seconds", s.wall_seconds()},
          {"programs", s.programs()},
          {"programs_owing", s.programs_owing()},
          {"programs_awaited", s.programs_awaited()},
          {"faults_active", s.faults_active()},
          {"faults", FaultsJson(s.faults())}};
}

std::string ClockText(const v1::StatusReply& s) {
  if (s.clock() != v1::CLOCK_LIVE) return "batch: as fast as this machine allows";
  const std::string reached = FormatShort(static_cast<Time>(s.pace_reached()));
  std::string text = fmt::format("live: pace {}/s requested, {}/s reached",
                                 s.pace() > 0 ? FormatShort(s.pace()) : "no limit", reached);
  if (s.wall_behind_seconds() >= 0.1) {
    text += fmt::format(", behind by {}", FormatWall(s.wall_behind_seconds()));
  }
  return text;
}

std::string ProgramsText(const v1::StatusReply& s) {
  if (s.programs() == 0 && s.programs_awaited() == 0) return "";
  std::string text = fmt::format("programs      {} attached", s.programs());
  if (s.programs_owing() > 0)
    text += fmt::format("; virtual time waits for {} of them", s.programs_owing());
  if (s.programs_awaited() > 0)
    text += fmt::format("; virtual time starts when {} more are attached", s.programs_awaited());
  return text + "\n";
}

std::string ScenarioText(const v1::StatusReply& s) {
  if (s.scenario().empty()) return "scenario      none; `percsctl apply FILE` starts one\n";
  std::string text = fmt::format("scenario      {} (run {}, {})\n", s.scenario(), s.run(),
                                 FormatNodes(s.nodes(), s.blades(), s.crossbars()));
  text += fmt::format("virtual time  {} after {} of wall time\n", FormatShort(s.virtual_time()),
                      FormatWall(s.wall_seconds()));
  text += fmt::format("windows       {} ({:.0f} per second)\n", FormatCount(s.windows()),
                      s.windows_per_second());
  text +=
      fmt::format("lookahead     {} ({})\n", FormatVirtual(s.lookahead()), s.lookahead_source());
  text += fmt::format("clock         {}\n", ClockText(s));
  text += fmt::format("routes        epoch {}\n", s.epoch());
  text += fmt::format(
      "packets       {} delivered; work left: {}\n", FormatCount(s.packets_delivered()),
      FormatCount(static_cast<std::uint64_t>(std::max<std::int64_t>(s.unfinished(), 0))));
  return text + ProgramsText(s);
}

std::string StatusText(const v1::StatusReply& s) {
  int connected = 0;
  for (const v1::ProcessStatus& p : s.processes()) connected += p.connected() ? 1 : 0;
  std::string text = fmt::format("state         {}\n", StateName(s.state()));
  if (!s.error().empty()) text += fmt::format("error         {}\n", s.error());
  if (!s.waits_for().empty()) text += fmt::format("waiting       {}\n", s.waits_for());
  text += fmt::format("controller    pid {}\n", s.pid());
  text += fmt::format("daemons       {} of {} connected\n", connected, s.daemons_expected());
  text += ScenarioText(s) + "\n";
  Table table({"daemon", "name", "pid", s.blades() > 0 ? "nodes" : "hubs", "connected",
               "reconnects", "windows", "address"},
              "llrrlrrl");
  for (const v1::ProcessStatus& p : s.processes()) {
    std::string nodes =
        p.nodes() == 0 ? "-" : fmt::format("{}-{}", p.first_node(), p.first_node() + p.nodes() - 1);
    if (p.blades() > 0) {
      nodes += p.blades() == p.nodes() ? " (blades)" : fmt::format(" ({} blades)", p.blades());
    }
    if (p.incarnation() > 0) {
      nodes += fmt::format(" (incarnation {} since {})", p.incarnation(),
                           FormatVirtual(p.rejoined_at()));
    }
    if (p.crossbars() > 0) nodes += fmt::format(" ({} crossbars)", p.crossbars());
    table.Add({fmt::format("{}", p.process()), p.name(), fmt::format("{}", p.pid()), nodes,
               p.connected() ? "yes" : "no", FormatCount(p.reconnects()), FormatCount(p.windows()),
               p.link_address()});
  }
  if (!table.empty()) text += table.ToString();
  if (s.faults_active() > 0) {
    text += fmt::format("\n{} not ended yet; `percsctl fault list` shows all of them\n{}",
                        Counted(s.faults_active(), "fault"), FaultsText(s.faults()));
  }
  return text;
}

}  // namespace

CommandBody AddStatus(CLI::App& app) {
  auto a = std::make_shared<FabricOptions>();
  AddFabricOptions(app, *a);
  return [a] {
    return WithFabric(*a, [&](FabricClient& client) {
      const auto reply = client.Status();
      if (!reply.ok()) return FromStatus(reply.status());
      fmt::print("{}", IsJson(a->format) ? StatusJson(*reply).dump(2) + "\n" : StatusText(*reply));
      return Outcome::Ok();
    });
  };
}

}  // namespace percs
