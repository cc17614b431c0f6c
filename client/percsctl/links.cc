// percsctl links: the links of a fabric, with their state and load.
#include "client/percsctl/links.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string_view>

#include "client/percsctl/command.h"
#include "client/percsctl/fabric_options.h"
#include "client/percsctl/format.h"

namespace percs {
namespace {

using Json = nlohmann::json;

struct LinksArguments {
  FabricOptions fabric;
  std::string node;
  bool only_down = false;
};

Json DirectionJson(const v1::PortCounters& port, double utilisation) {
  return {{"flits", port.flits()},           {"packets", port.packets()},
          {"bytes", port.bytes()},           {"credit_stall_ps", port.credit_stall_ps()},
          {"crc_errors", port.crc_errors()}, {"replays", port.replays()},
          {"lanes_lost", port.lanes_lost()}, {"utilisation", utilisation}};
}

// Lanes lost in the two directions, if any are: "up -2/-0".
std::string State(const v1::LinkStatus& link) {
  const std::string state = link.up() ? "up" : "DOWN";
  const auto forward = link.forward().lanes_lost(), backward = link.backward().lanes_lost();
  return forward + backward == 0 ? state
                                 : fmt::format("{} -{}/-{} lanes", state, forward, backward);
}

// "6 links, 1 down", or of those that are down alone "1 link down".
std::string Heading(std::uint64_t links, std::uint64_t down, bool only_down) {
  if (!only_down) return fmt::format("{}, {} down", Counted(links, "link"), down);
  return down == 0 ? "no link is down" : fmt::format("{} down", Counted(down, "link"));
}

// Flits and load in one direction; replays where any link has some.
void AddDirection(const v1::PortCounters& port, double utilisation, bool replays,
                  std::vector<std::string>& row) {
  row.push_back(FormatCount(port.flits()));
  row.push_back(FormatPercent(utilisation));
  if (replays) row.push_back(FormatCount(port.replays()));
}

std::string LinksText(const v1::ListLinksReply& reply, bool only_down) {
  const auto& links = reply.links();
  const bool replays = std::any_of(links.begin(), links.end(), [](const v1::LinkStatus& l) {
    return l.forward().replays() + l.backward().replays() > 0;
  });
  std::vector<std::string> header{"link", "ends", "class", "state"};
  for (const char* way : {"->", "<-"}) {
    for (const char* what : {"flits", "load", "replays"}) {
      if (replays || what != std::string_view("replays"))
        header.push_back(fmt::format("{} {}", what, way));
    }
  }
  Table table(header, "llllr");
  std::uint64_t down = 0;
  for (const v1::LinkStatus& l : links) {
    down += l.up() ? 0 : 1;
    std::vector<std::string> row{l.name(), l.ends(), l.link_class(), State(l)};
    AddDirection(l.forward(), l.utilisation_forward(), replays, row);
    AddDirection(l.backward(), l.utilisation_backward(), replays, row);
    table.Add(std::move(row));
  }
  return fmt::format(
      "{}, at {}{}\n{}", Heading(static_cast<std::uint64_t>(reply.links_size()), down, only_down),
      FormatVirtual(reply.virtual_time()), replays || table.empty() ? "" : "; no flit was replayed",
      table.empty() ? "" : table.ToString());
}

Outcome Links(const LinksArguments& a) {
  return WithFabric(a.fabric, [&](FabricClient& client) {
    auto reply = client.ListLinks(a.node);
    if (!reply.ok()) return FromStatus(reply.status());
    if (a.only_down) {
      auto* links = reply->mutable_links();
      links->erase(
          std::remove_if(links->begin(), links->end(), [](const auto& l) { return l.up(); }),
          links->end());
    }
    fmt::print("{}", IsJson(a.fabric.format) ? LinksJson(*reply).dump(2) + "\n"
                                             : LinksText(*reply, a.only_down));
    return Outcome::Ok();
  });
}

}  // namespace

Json LinksJson(const v1::ListLinksReply& reply) {
  Json links = Json::array();
  for (const v1::LinkStatus& l : reply.links()) {
    links.push_back({{"name", l.name()},
                     {"ends", l.ends()},
                     {"class", l.link_class()},
                     {"up", l.up()},
                     {"forward", DirectionJson(l.forward(), l.utilisation_forward())},
                     {"backward", DirectionJson(l.backward(), l.utilisation_backward())}});
  }
  return {{"virtual_ps", reply.virtual_time()}, {"links", std::move(links)}};
}

CommandBody AddLinks(CLI::App& app) {
  auto a = std::make_shared<LinksArguments>();
  app.add_option("NODE", a->node, "Only the links of this hub or blade, like sn0-d1-h3");
  app.add_flag("--down", a->only_down, "Only links that are down");
  AddFabricOptions(app, a->fabric);
  return [a] { return Links(*a); };
}

}  // namespace percs
