// percsctl routes: the routes of packets, and route tables: dumped, loaded, compared.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "client/lib/route_file.h"
#include "client/lib/scenario_file.h"
#include "client/percsctl/command.h"
#include "client/percsctl/fabric_options.h"
#include "client/percsctl/format.h"
#include "proto/convert/topology.h"
#include "proto/scenario/route_tables_codec.h"
#include "proto/scenario/suggest.h"

namespace percs {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kDifferencesShown = 40;

struct RoutesArguments {
  FabricOptions fabric;
  std::string source, destination, mode;
  std::optional<std::uint32_t> middle;
};

struct DumpArguments {
  FabricOptions fabric;
  std::string scenario, node, output;
  std::vector<std::string> down;
};

struct LoadArguments {
  FabricOptions fabric;
  std::string file, scenario;
  std::vector<std::string> down;
};

struct DiffArguments {
  FabricOptions fabric;
  std::string before, after;
};

// Links of these routes that are down, by the end that sends. Tables keep such a link until network
// management has replanned without it.
absl::StatusOr<std::set<std::string>> DownOnRoutes(FabricClient& client, const std::string& source,
                                                   const v1::GetRoutesReply& routes) {
  const auto health = client.GetHealth();
  if (!health.ok()) return health.status();
  std::set<std::string> down;
  if (health->links_down().empty()) return down;
  const auto machine = client.DumpRoutes(source);  // of the machine only its shape is of interest
  if (!machine.ok()) return machine.status();
  const auto topology = TopologyFromProto(machine->topology(), machine->blades());
  if (!topology.ok()) return topology.status();
  for (const std::string& name : health->links_down()) {
    const auto link = topology->ParseLink(name);
    if (!link.ok()) return link.status();
    down.insert(topology->LinkName(*link));
    down.insert(topology->LinkName(topology->Peer(link->node, link->port)));
  }
  return down;
}

Json RoutesJson(const v1::GetRoutesReply& reply, const std::set<std::string>& down) {
  Json routes = Json::array();
  for (const v1::Route& route : reply.routes()) {
    Json hops = Json::array();
    for (const v1::RouteHop& h : route.hops()) {
      hops.push_back({{"node", h.node()},
                      {"link", h.link()},
                      {"class", h.link_class()},
                      {"vc", h.vc()},
                      {"choices", h.choices()},
                      {"up", !down.contains(h.link())}});
    }
    routes.push_back({{"hops", std::move(hops)}, {"problem", route.problem()}});
  }
  return {{"epoch", reply.epoch()}, {"routes", std::move(routes)}};
}

std::string HopText(const v1::RouteHop& h, const std::set<std::string>& down) {
  if (h.link().empty() || h.link() == "HFI") return h.node();
  const std::string port = h.link().substr(h.link().find(':') + 1);
  const std::string choices = h.choices() > 1 ? fmt::format(", 1 of {}", h.choices()) : "";
  const char* state = down.contains(h.link()) ? ", DOWN" : "";
  return fmt::format("{} --{} vc{}{}{}-->", h.node(), port, h.vc(), choices, state);
}

std::string RoutesText(const v1::GetRoutesReply& reply, const std::set<std::string>& down) {
  std::string text =
      fmt::format("{} in the tables of epoch {}\n",
                  Counted(static_cast<std::uint64_t>(reply.routes_size()), "route"), reply.epoch());
  for (int i = 0; i < reply.routes_size(); ++i) {
    const v1::Route& route = reply.routes(i);
    std::vector<std::string> hops;
    for (const v1::RouteHop& h : route.hops()) hops.push_back(HopText(h, down));
    text += fmt::format("{:>3}  {}", i + 1, fmt::join(hops, " "));
    text += route.problem().empty() ? "\n" : fmt::format("  PROBLEM: {}\n", route.problem());
  }
  return text;
}

Outcome Routes(const RoutesArguments& a) {
  if (a.source.empty() || a.destination.empty()) {
    const std::string command = DidYouMean(a.source, {"dump", "load", "diff"});
    return Outcome::Fail(ExitCode::kUsage, fmt::format("two hubs are needed, SRC and DST{}",
                                                       command.empty() ? "; see --help" : command));
  }
  v1::GetRoutesRequest request;
  request.set_source(a.source);
  request.set_destination(a.destination);
  for (int mode = 0; !a.mode.empty() && mode < kPacketRouteModes; ++mode) {
    if (a.mode == RouteModeName(static_cast<RouteMode>(mode))) {
      request.set_mode(static_cast<v1::RouteMode>(mode + 1));
    }
  }
  if (a.middle) request.set_middle_supernode(*a.middle);
  return WithFabric(a.fabric, [&](FabricClient& client) {
    const auto reply = client.GetRoutes(request);
    if (!reply.ok()) return FromStatus(reply.status());
    const auto down = DownOnRoutes(client, a.source, *reply);
    if (!down.ok()) return FromStatus(down.status());
    fmt::print("{}", IsJson(a.fabric.format) ? RoutesJson(*reply, *down).dump(2) + "\n"
                                             : RoutesText(*reply, *down));
    return Outcome::Ok();
  });
}

absl::StatusOr<Failures> LinksDown(const Topology& topology,
                                   const std::vector<std::string>& names) {
  Failures failures;
  for (const std::string& name : names) {
    const auto link = topology.ParseLink(name);
    if (!link.ok()) return link.status();
    const LinkEnd far = topology.Peer(link->node, link->port);
    failures.links.insert(
        std::min(std::pair(link->node, link->port), std::pair(far.node, far.port)));
  }
  return failures;
}

// The tables that a scenario starts with, or would have with some links down.
absl::StatusOr<RouteFile> PlannedRoutes(const std::string& path, const std::string& only,
                                        const std::vector<std::string>& down) {
  const auto input = LoadScenario(path, {}, std::nullopt);
  if (!input.ok()) return input.status();
  const auto topology = percs::Topology::Create(input->scenario.topology);
  if (!topology.ok()) return topology.status();
  const auto failures = LinksDown(*topology, down);
  if (!failures.ok()) return failures.status();
  TableSet all = Planner(*topology).Plan(*failures), some;
  std::vector<NodeId> nodes;
  if (only.empty()) {
    for (NodeId node = 0; node < topology->nodes(); ++node) nodes.push_back(node);
    some = std::move(all);
  } else {
    const auto node = topology->ParseNode(only);
    if (!node.ok()) return node.status();
    nodes = {*node};
    some = {all[*node]};
  }
  return MakeRouteFile(*topology, 0, nodes, std::move(some));
}

absl::StatusOr<RouteFile> LiveRoutes(FabricClient& client, const std::string& node) {
  const auto reply = client.DumpRoutes(node);
  if (!reply.ok()) return reply.status();
  const auto topology = TopologyFromProto(reply->topology(), reply->blades());
  if (!topology.ok()) return topology.status();
  NodeTablesList list = reply->tables();
  std::vector<NodeId> nodes;
  for (int i = 0; i < list.size(); ++i) {
    nodes.push_back(list[i].node());
    list[i].set_node(static_cast<std::uint32_t>(i));
  }
  auto tables = TablesFromProto(list, static_cast<NodeId>(list.size()));
  if (!tables.ok()) return tables.status();
  return MakeRouteFile(*topology, reply->epoch(), nodes, *std::move(tables));
}

Outcome Write(const absl::StatusOr<RouteFile>& file, const std::string& output) {
  if (!file.ok()) return FromStatus(file.status());
  const std::string text = PrintRoutes(*file);
  if (output.empty()) {
    fmt::print("{}", text);
    return Outcome::Ok();
  }
  std::ofstream out(output, std::ios::binary);
  out << text;
  if (!out.flush()) return Outcome::Fail(ExitCode::kFailed, output + ": cannot be written");
  fmt::print("tables of {}, {}, written to {}\n", Counted(file->names.size(), "node"),
             file->epoch == 0 ? "as planned" : fmt::format("epoch {}", file->epoch), output);
  return Outcome::Ok();
}

Outcome Dump(const DumpArguments& a) {
  if (!a.scenario.empty()) return Write(PlannedRoutes(a.scenario, a.node, a.down), a.output);
  if (!a.down.empty()) {
    return Outcome::Fail(ExitCode::kUsage,
                         "--down needs a scenario file; a running fabric has its own faults");
  }
  return WithFabric(
      a.fabric, [&](FabricClient& client) { return Write(LiveRoutes(client, a.node), a.output); });
}

// In this process a table set is only proven; `percsctl run --routes` runs with it.
Outcome Prove(const RouteFile& file, const std::string& scenario_path,
              const std::vector<std::string>& down) {
  const auto input = LoadScenario(scenario_path, {}, std::nullopt);
  if (!input.ok()) return FromStatus(input.status());
  const auto topology = percs::Topology::Create(input->scenario.topology);
  if (!topology.ok()) return FromStatus(topology.status());
  if (auto status = CheckRouteFile(file, *topology); !status.ok()) return FromStatus(status);
  const auto failures = LinksDown(*topology, down);
  if (!failures.ok()) return FromStatus(failures.status());
  const auto report =
      CheckTables(*topology, *failures, file.tables, input->scenario.parameters.vc_policy);
  if (!report.ok()) {
    return Outcome::Fail(ExitCode::kBadInput, std::string(report.status().message()));
  }
  fmt::print("proven: {} pairs unreachable, at most {} hops direct and {} indirect\n",
             report->unreachable_pairs, report->hops_max, report->indirect_hops_max);
  return Outcome::Ok();
}

Outcome Load(const LoadArguments& a) {
  const auto file = ReadRouteFile(a.file);
  if (!file.ok()) return FromStatus(file.status());
  if (!a.scenario.empty()) return Prove(*file, a.scenario, a.down);
  if (!a.down.empty()) {
    return Outcome::Fail(ExitCode::kUsage,
                         "--down needs --scenario; a running fabric knows what is down");
  }
  v1::LoadRoutesRequest request;
  std::vector<NodeId> nodes(file->tables.size());
  for (NodeId node = 0; node < nodes.size(); ++node) nodes[node] = node;
  TablesToProto(
      nodes, [&](NodeId node) { return file->tables[node]; }, request.mutable_tables());
  return WithFabric(a.fabric, [&](FabricClient& client) {
    const auto reply = client.LoadRoutes(request);
    if (!reply.ok()) return FromStatus(reply.status());
    if (IsJson(a.fabric.format)) {
      fmt::print("{}\n", Json{{"epoch", reply->epoch()},
                              {"at_ps", reply->at()},
                              {"hubs_changed", reply->hubs_changed()},
                              {"unreachable_pairs", reply->unreachable_pairs()}}
                             .dump(2));
    } else {
      fmt::print("epoch {}: tables of {} change at {}, {} unreachable\n", reply->epoch(),
                 Counted(reply->hubs_changed(), "hub"), FormatVirtual(reply->at()),
                 Counted(reply->unreachable_pairs(), "pair"));
    }
    return Outcome::Ok();
  });
}

Outcome ShowDifferences(const RouteFile& before, const RouteFile& after, bool json) {
  const std::vector<std::string> lines = DiffRoutes(before, after);
  if (json) {
    fmt::print("{}\n", Json{{"differences", lines}}.dump(2));
  } else {
    for (std::size_t i = 0; i < std::min(lines.size(), kDifferencesShown); ++i) {
      fmt::print("{}\n", lines[i]);
    }
    if (lines.size() > kDifferencesShown) {
      fmt::print("... and {} more (all with --format json)\n", lines.size() - kDifferencesShown);
    }
    fmt::print("{} entries differ\n", lines.size());
  }
  return lines.empty() ? Outcome::Ok() : Outcome::Fail(ExitCode::kFailed, "");
}

Outcome Diff(const DiffArguments& a) {
  const auto before = ReadRouteFile(a.before);
  if (!before.ok()) return FromStatus(before.status());
  const bool json = IsJson(a.fabric.format);
  if (!a.after.empty()) {
    const auto after = ReadRouteFile(a.after);
    return after.ok() ? ShowDifferences(*before, *after, json) : FromStatus(after.status());
  }
  return WithFabric(a.fabric, [&](FabricClient& client) {
    const auto live = LiveRoutes(client, "");
    return live.ok() ? ShowDifferences(*before, *live, json) : FromStatus(live.status());
  });
}

CommandBody AddDump(CLI::App& app) {
  auto a = std::make_shared<DumpArguments>();
  CLI::App* sub =
      app.add_subcommand("dump", "Write the tables of a fabric, or those a scenario starts with");
  sub->add_option("SCENARIO", a->scenario,
                  "Plan its tables in this process; default: the running fabric");
  sub->add_option("--down", a->down, "With a scenario: a link that is down (repeatable)");
  sub->add_option("--node", a->node, "Only the tables of this hub");
  sub->add_option("-o,--output", a->output, "File instead of standard output");
  AddFabricOptions(*sub, a->fabric);
  sub->footer(
      "Examples:\n  percsctl routes dump -o tables.json\n"
      "  percsctl routes dump deploy/scenarios/four-supernodes.yaml \\\n"
      "      --node sn0-d0-h0");
  return [a] { return Dump(*a); };
}

CommandBody AddLoad(CLI::App& app) {
  auto a = std::make_shared<LoadArguments>();
  CLI::App* sub = app.add_subcommand("load", "Check tables and install them in the running fabric");
  sub->add_option("FILE", a->file, "Tables of every node, written by `dump`")->required();
  sub->add_option("--scenario", a->scenario, "Only check them, for this scenario, in this process");
  sub->add_option("--down", a->down, "With a scenario: a link that is down (repeatable)");
  AddFabricOptions(*sub, a->fabric);
  sub->footer(
      "Examples:\n  percsctl routes load tables.json\n"
      "  percsctl routes load tables.json \\\n"
      "      --scenario deploy/scenarios/four-supernodes.yaml");
  return [a] { return Load(*a); };
}

CommandBody AddDiff(CLI::App& app) {
  auto a = std::make_shared<DiffArguments>();
  CLI::App* sub =
      app.add_subcommand("diff", "Compare tables entry by entry; exit code 1 if they differ");
  sub->add_option("BEFORE", a->before, "Tables written by `dump`")->required();
  sub->add_option("AFTER", a->after, "Other tables; default: those of the running fabric");
  AddFabricOptions(*sub, a->fabric);
  sub->footer(
      "Examples:\n  percsctl routes diff before.json\n  percsctl routes diff a.json b.json");
  return [a] { return Diff(*a); };
}

}  // namespace

CommandBody AddRoutes(CLI::App& app) {
  auto a = std::make_shared<RoutesArguments>();
  std::vector<std::string> modes;
  for (int mode = 0; mode < kPacketRouteModes; ++mode) {
    modes.push_back(RouteModeName(static_cast<RouteMode>(mode)));
  }
  app.require_subcommand(0, 1);
  app.add_option("SRC", a->source, "Sending hub, like sn0-d0-h0");
  app.add_option("DST", a->destination, "Receiving hub");
  app.add_option("--mode", a->mode, "Route mode of the packets; default: hw_direct")
      ->check(CLI::IsMember(modes));
  app.add_option("--middle", a->middle, "Indirect modes: only through this supernode");
  AddFabricOptions(app, a->fabric);
  const CommandBody dump = AddDump(app), load = AddLoad(app), diff = AddDiff(app);
  return [&app, a, dump, load, diff] {
    if (app.got_subcommand("dump")) return dump();
    if (app.got_subcommand("load")) return load();
    return app.got_subcommand("diff") ? diff() : Routes(*a);
  };
}

}  // namespace percs
