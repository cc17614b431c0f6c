// Trees of CAUs in reports.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "client/percsctl/format.h"
#include "client/percsctl/report.h"

namespace percs {
namespace {

using Json = nlohmann::json;
using Trees = google::protobuf::RepeatedPtrField<v1::TreeStatus>;

double Nanoseconds(Time time) {
  return static_cast<double>(time) / static_cast<double>(kNanosecond);
}

Json RepairsJson(const v1::TreeStatus& tree) {
  Json json = Json::array();
  for (const v1::TreeRepair& r : tree.repairs()) {
    json.push_back({{"problem", r.problem()},
                    {"generation", r.generation()},
                    {"raised_ns", Nanoseconds(r.raised())},
                    {"started_ns", Nanoseconds(r.started())},
                    {"ready_ns", r.has_ready() ? Json(Nanoseconds(r.ready())) : Json()},
                    {"lost", std::vector<std::string>(r.lost().begin(), r.lost().end())},
                    {"back", std::vector<std::string>(r.back().begin(), r.back().end())}});
  }
  return json;
}

std::string RepairText(const v1::TreeStatus& tree, const v1::TreeRepair& r) {
  std::string text =
      fmt::format("tree {}: {} at {}: {}; ", tree.name(), r.back_size() > 0 ? "grows" : "failed",
                  FormatShort(r.raised()), r.problem());
  text += r.has_ready()
              ? fmt::format("generation {} ready at {}", r.generation(), FormatShort(r.ready()))
              : std::string("not set up again");
  if (r.lost_size() > 0) text += fmt::format(", without {}", fmt::join(r.lost(), ", "));
  if (r.back_size() > 0) text += fmt::format(", again with {}", fmt::join(r.back(), ", "));
  return text + "\n";
}

}  // namespace

Json TreesJson(const Trees& trees) {
  Json json = Json::array();
  for (const v1::TreeStatus& t : trees) {
    Json tree = {{"id", t.id()},
                 {"name", t.name()},
                 {"state", t.state()},
                 {"generation", t.generation()},
                 {"participants", t.participants()},
                 {"indexes", t.indexes()},
                 {"depth", t.depth()},
                 {"problem", t.problem()},
                 {"since_ns", Nanoseconds(t.since())},
                 {"repairs", RepairsJson(t)}};
    for (const v1::TreeVertex& v : t.vertices()) {
      tree["vertices"].push_back({{"hub", v.node()},
                                  {"parent", v.has_parent() ? Json(v.parent()) : Json()},
                                  {"participant", v.participant()}});
    }
    json.push_back(std::move(tree));
  }
  return json;
}

std::string TreesText(const Trees& trees) {
  Table table({"tree", "name", "state", "generation", "participants", "indexes", "depth"},
              "rllrrrr");
  std::string more;
  for (const v1::TreeStatus& t : trees) {
    table.Add({fmt::format("{}", t.id()), t.name(), t.state(), fmt::format("{}", t.generation()),
               FormatCount(t.participants()), FormatCount(t.indexes()),
               fmt::format("{}", t.depth())});
    for (const v1::TreeRepair& r : t.repairs()) more += RepairText(t, r);
    if (!t.problem().empty()) more += fmt::format("tree {}: {}\n", t.name(), t.problem());
    for (int v = 0; v < t.vertices_size(); ++v) {
      const v1::TreeVertex& vertex = t.vertices(v);
      more +=
          fmt::format("  {:>4}  {}{}{}\n", v, vertex.node(), vertex.participant() ? "" : " (relay)",
                      vertex.has_parent() ? fmt::format(", child of {}", vertex.parent())
                                          : std::string(", top"));
    }
  }
  return table.empty() ? "no trees\n" : table.ToString() + more;
}

}  // namespace percs
