// percsctl counters: what a hub, or the whole machine, has counted so far.
#include "proto/convert/counters.h"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "client/percsctl/command.h"
#include "client/percsctl/fabric_options.h"
#include "client/percsctl/format.h"
#include "client/percsctl/report.h"
#include "emulator/metrics/named_counters.h"

namespace percs {
namespace {

using Json = nlohmann::json;

struct CountersArguments {
  FabricOptions fabric;
  std::string node;
  bool per_node = false, vc = false, list = false;
};

std::string PerNodeText(const std::vector<std::pair<std::string, NodeStats>>& nodes) {
  Table table(
      {"node", "created", "delivered", "bytes", "dropped", "resent", "latency mean (virtual)"});
  for (const auto& [name, s] : nodes) {
    table.Add({name, FormatCount(s.packets_created), FormatCount(s.packets_delivered),
               FormatBytes(s.bytes_delivered), FormatCount(PacketsDropped(s)),
               FormatCount(s.packets_resent),
               s.packet_latency.count == 0
                   ? "-"
                   : FormatShort(static_cast<Time>(s.packet_latency.Mean()))});
  }
  return table.ToString();
}

// All counters, from the table that defines them.
struct ListedCounter {
  std::string name, metric;
  std::string field;  // its place in percs.v1.Counters
  const char* unit;
  int since;
  const char* help;
};

std::vector<ListedCounter> ListedCounters() {
  std::vector<ListedCounter> list;
  for (const NamedCounter& c : NamedCounters()) {
    list.push_back(
        {c.json, c.metric, c.name, CounterUnitName(c.row->unit), c.row->since, c.row->help});
  }
  const auto add = [&list](const char* where, const auto& rows) {
    for (const auto& row : rows) {
      list.push_back({fmt::format("{}.{}", where, row.name), "", "", CounterUnitName(row.unit),
                      row.since, row.help});
    }
  };
  add("ports.CLASS", kPortCounters);
  add("vcs", kVcCounters);
  return list;
}

Outcome ListCounters(bool json) {
  Table table({"counter", "unit", "since model", "metric", "meaning"}, "llrll");
  Json list = Json::array();
  for (const ListedCounter& c : ListedCounters()) {
    table.Add({c.name, c.unit, std::to_string(c.since), c.metric, c.help});
    list.push_back({{"name", c.name},
                    {"unit", c.unit},
                    {"since_model", c.since},
                    {"metric", c.metric.empty() ? Json() : Json(c.metric)},
                    {"field", c.field.empty() ? Json() : Json(c.field)},
                    {"meaning", c.help}});
  }
  fmt::print("{}", json ? list.dump(2) + "\n" : table.ToString());
  return Outcome::Ok();
}

Outcome Counters(const CountersArguments& a) {
  if (a.list) return ListCounters(IsJson(a.fabric.format));
  return WithFabric(a.fabric, [&](FabricClient& client) {
    const auto reply = client.GetCounters(a.node, a.per_node);
    if (!reply.ok()) return FromStatus(reply.status());
    std::vector<std::pair<std::string, NodeStats>> nodes;
    for (const v1::NodeCounters& n : reply->nodes()) {
      auto stats = CountersFromProto(n.counters());
      if (!stats.ok()) return Outcome::Fail(ExitCode::kFailed, Text(stats.status()));
      nodes.emplace_back(n.node().empty() ? "all nodes" : n.node(), *stats);
    }
    if (IsJson(a.fabric.format)) {
      Json list = Json::array();
      for (const auto& [name, stats] : nodes) {
        Json one = CountersJson(stats);
        if (a.vc) one["vcs"] = VcCountersJson(stats);
        one["node"] = name;
        list.push_back(std::move(one));
      }
      fmt::print("{}\n",
                 Json{{"virtual_ps", reply->virtual_time()}, {"nodes", std::move(list)}}.dump(2));
      return Outcome::Ok();
    }
    fmt::print("counted up to {}\n", FormatVirtual(reply->virtual_time()));
    if (a.per_node) {
      fmt::print("{}", PerNodeText(nodes));
    } else {
      for (const auto& [name, stats] : nodes) {
        fmt::print("\n{}\n{}", name, CountersText(stats));
        if (a.vc) fmt::print("{}", VcCountersText(stats));
      }
    }
    return Outcome::Ok();
  });
}

}  // namespace

CommandBody AddCounters(CLI::App& app) {
  auto a = std::make_shared<CountersArguments>();
  CLI::Option* node =
      app.add_option("NODE", a->node, "Hub or blade, like sn0-d1-h3; default: the sum over all");
  CLI::Option* per_node = app.add_flag("--per-node", a->per_node, "One line per hub and blade");
  app.add_flag("--vc", a->vc, "Also per port and virtual channel; needs a hub or blade")
      ->needs(node)
      ->excludes(per_node);
  app.add_flag("--list", a->list,
               "List all counters with unit, metric and meaning; no fabric is needed")
      ->excludes(node)
      ->excludes(per_node);
  AddFabricOptions(app, a->fabric);
  return [a] { return Counters(*a); };
}

}  // namespace percs
