// percsctl links and routes: what is there, and which way packets go.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

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

struct RoutesArguments {
  FabricOptions fabric;
  std::string source, destination;
};

Json DirectionJson(const v1::PortCounters& port, double utilisation) {
  return {{"flits", port.flits()},
          {"packets", port.packets()},
          {"bytes", port.bytes()},
          {"credit_stall_ps", port.credit_stall_ps()},
          {"utilisation", utilisation}};
}

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

std::string LinksText(const v1::ListLinksReply& reply) {
  Table table({"link", "ends", "class", "state", "flits ->", "load ->", "flits <-", "load <-"},
              "llllr");
  int down = 0;
  for (const v1::LinkStatus& l : reply.links()) {
    down += l.up() ? 0 : 1;
    table.Add({l.name(), l.ends(), l.link_class(), l.up() ? "up" : "DOWN",
               FormatCount(l.forward().flits()), FormatPercent(l.utilisation_forward()),
               FormatCount(l.backward().flits()), FormatPercent(l.utilisation_backward())});
  }
  return fmt::format("{} link{}, {} down, at {}\n{}", reply.links_size(),
                     reply.links_size() == 1 ? "" : "s", down, FormatVirtual(reply.virtual_time()),
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
    fmt::print("{}",
               IsJson(a.fabric.format) ? LinksJson(*reply).dump(2) + "\n" : LinksText(*reply));
    return Outcome::Ok();
  });
}

Json RoutesJson(const v1::GetRoutesReply& reply) {
  Json routes = Json::array();
  for (const v1::Route& route : reply.routes()) {
    Json hops = Json::array();
    for (const v1::RouteHop& h : route.hops()) {
      hops.push_back({{"node", h.node()},
                      {"link", h.link()},
                      {"class", h.link_class()},
                      {"vc", h.vc()},
                      {"choices", h.choices()}});
    }
    routes.push_back({{"hops", std::move(hops)}, {"problem", route.problem()}});
  }
  return {{"epoch", reply.epoch()}, {"routes", std::move(routes)}};
}

std::string HopText(const v1::RouteHop& h) {
  if (h.link().empty() || h.link() == "HFI") return h.node();
  const std::string port = h.link().substr(h.link().find(':') + 1);
  const std::string choices = h.choices() > 1 ? fmt::format(", 1 of {}", h.choices()) : "";
  return fmt::format("{} --{} vc{}{}-->", h.node(), port, h.vc(), choices);
}

std::string RoutesText(const v1::GetRoutesReply& reply) {
  std::string text = fmt::format("{} route{} in the tables of epoch {}\n", reply.routes_size(),
                                 reply.routes_size() == 1 ? "" : "s", reply.epoch());
  for (int i = 0; i < reply.routes_size(); ++i) {
    const v1::Route& route = reply.routes(i);
    std::vector<std::string> hops;
    for (const v1::RouteHop& h : route.hops()) hops.push_back(HopText(h));
    text += fmt::format("{:>3}  {}", i + 1, fmt::join(hops, " "));
    text += route.problem().empty() ? "\n" : fmt::format("  PROBLEM: {}\n", route.problem());
  }
  return text;
}

Outcome Routes(const RoutesArguments& a) {
  return WithFabric(a.fabric, [&](FabricClient& client) {
    const auto reply = client.GetRoutes(a.source, a.destination);
    if (!reply.ok()) return FromStatus(reply.status());
    fmt::print("{}",
               IsJson(a.fabric.format) ? RoutesJson(*reply).dump(2) + "\n" : RoutesText(*reply));
    return Outcome::Ok();
  });
}

}  // namespace

CommandBody AddLinks(CLI::App& app) {
  auto a = std::make_shared<LinksArguments>();
  app.add_option("NODE", a->node, "Only the links of this hub or blade, like sn0-d1-h3");
  app.add_flag("--down", a->only_down, "Only links that are down");
  AddFabricOptions(app, a->fabric);
  return [a] { return Links(*a); };
}

CommandBody AddRoutes(CLI::App& app) {
  auto a = std::make_shared<RoutesArguments>();
  app.add_option("SRC", a->source, "Sending hub, like sn0-d0-h0")->required();
  app.add_option("DST", a->destination, "Receiving hub")->required();
  AddFabricOptions(app, a->fabric);
  return [a] { return Routes(*a); };
}

}  // namespace percs
