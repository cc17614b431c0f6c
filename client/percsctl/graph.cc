// percsctl graph: the machine of a fabric or of a scenario as a drawing.
#include "client/percsctl/graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>

#include "client/lib/scenario_file.h"
#include "client/percsctl/command.h"
#include "client/percsctl/fabric_options.h"
#include "client/percsctl/format.h"
#include "client/percsctl/scenario_options.h"
#include "emulator/topology/topology.h"
#include "proto/process/replace_file.h"

namespace percs {
namespace {

constexpr const char *kDot = "dot", *kMermaid = "mermaid", *kSvg = "svg", *kMatrix = "matrix";
// Where circles of hubs become a matrix, if the user does not say what is wanted.
constexpr std::size_t kSvgNodesMax = 128;

struct GraphArguments {
  FabricOptions fabric;
  std::string file, output, type;
  std::vector<std::string> settings;
  std::optional<std::uint64_t> seed;
};

// "sn0-d1" of "sn0-d1-h3"; "cu0" of a crossbar.
std::string GroupOf(const std::string& node) {
  if (node.starts_with("blade") || node.starts_with("triblade")) return "blades";
  return node.substr(0, node.rfind('-'));
}

class Builder {
 public:
  explicit Builder(std::string title) { graph_.title = std::move(title); }

  void Add(GraphLink link, const std::string& a, const std::string& b) {
    link.a = Node(a);
    link.b = Node(b);
    graph_.links.push_back(std::move(link));
  }
  Graph Take(bool live) {
    graph_.live = live;
    return std::move(graph_);
  }

 private:
  std::size_t Node(const std::string& name) {
    const auto [at, added] = nodes_.emplace(name, graph_.nodes.size());
    if (!added) return at->second;
    const auto [group, first] = groups_.emplace(GroupOf(name), graph_.groups.size());
    if (first) graph_.groups.push_back(group->first);
    graph_.nodes.push_back({name, group->second});
    return at->second;
  }

  Graph graph_;
  std::map<std::string, std::size_t> nodes_, groups_;
};

absl::StatusOr<Graph> OfScenario(const GraphArguments& a) {
  const auto input = LoadScenario(a.file, a.settings, a.seed);
  if (!input.ok()) return input.status();
  const auto topology = Topology::Create(input->scenario.topology);
  if (!topology.ok()) return topology.status();
  Builder builder(input->scenario.name);
  for (const LinkEnd& end : topology->Links()) {
    const NodeId peer = topology->Peer(end.node, end.port).node;
    builder.Add({topology->LinkName(end), ClassName(topology->ClassOfLink(end))},
                topology->NodeName(end.node), topology->NodeName(peer));
  }
  return builder.Take(false);
}

// An address would be too long for a title: the scenario's name stands for it.
absl::StatusOr<std::string> NameOf(FabricClient& client, const FabricOptions& fabric) {
  if (fabric.controller.empty()) return fabric.name;
  const auto status = client.Status();
  if (!status.ok()) return status.status();
  return status->scenario();
}

absl::StatusOr<Graph> OfFabric(FabricClient& client, const FabricOptions& fabric) {
  const auto name = NameOf(client, fabric);
  if (!name.ok()) return name.status();
  const auto reply = client.ListLinks("");
  if (!reply.ok()) return reply.status();
  Builder builder(fmt::format("{} at {}", *name, FormatVirtual(reply->virtual_time())));
  for (const v1::LinkStatus& link : reply->links()) {
    const std::size_t slash = link.ends().find('/');
    builder.Add({link.name(), link.link_class(), 0, 0, link.up(),
                 std::max(link.utilisation_forward(), link.utilisation_backward())},
                link.ends().substr(0, slash), link.ends().substr(slash + 1));
  }
  return builder.Take(true);
}

// "" for a name of a file that says none.
std::string TypeOf(const GraphArguments& a, const Graph& graph) {
  if (!a.type.empty()) return a.type;
  if (a.output.empty()) return kDot;
  const std::string extension = std::filesystem::path(a.output).extension().string();
  if (extension == ".svg") return graph.nodes.size() > kSvgNodesMax ? kMatrix : kSvg;
  return extension == ".mmd" ? kMermaid : extension == ".dot" || extension == ".gv" ? kDot : "";
}

Outcome Draw(const GraphArguments& a, const absl::StatusOr<Graph>& graph) {
  if (!graph.ok()) return FromStatus(graph.status());
  const std::string type = TypeOf(a, *graph);
  if (type.empty()) {
    return Outcome::Fail(
        ExitCode::kUsage,
        fmt::format("{}: name the file .svg, .dot, .gv or .mmd, or add --type", a.output));
  }
  const std::string text = type == kSvg       ? GraphSvg(*graph)
                           : type == kMatrix  ? GraphMatrix(*graph)
                           : type == kMermaid ? GraphMermaid(*graph)
                                              : GraphDot(*graph);
  if (a.output.empty()) {
    fmt::print("{}", text);
    return Outcome::Ok();
  }
  if (const absl::Status status = ReplaceFile(a.output, text); !status.ok())
    return Outcome::Fail(ExitCode::kFailed, Text(status));
  fmt::print("{}: {} of {} and {}\n", a.output, type, Counted(graph->nodes.size(), "node"),
             Counted(graph->links.size(), "link"));
  return Outcome::Ok();
}

}  // namespace

CommandBody AddGraph(CLI::App& app) {
  auto a = std::make_shared<GraphArguments>();
  CLI::Option* file = app.add_option(
      "FILE", a->file,
      "Scenario whose machine is drawn; default: that of the running fabric, with the "
      "load of its links");
  app.add_option("-o,--output", a->output, "File (.svg, .dot, .mmd); default: standard output");
  app.add_option("--type", a->type,
                 "Type of the drawing; default: by the name of the file, or dot. A .svg of more "
                 "than 128 nodes is a matrix")
      ->check(CLI::IsMember({kDot, kMermaid, kSvg, kMatrix}));
  AddSettingOptions(app, a->settings, a->seed);
  for (const char* option : {"--set", "--seed"}) app.get_option(option)->needs(file);
  AddNameOption(app, a->fabric.name);
  AddControllerOptions(app, a->fabric);
  return [a] {
    if (!a->file.empty()) return Draw(*a, OfScenario(*a));
    return WithFabric(a->fabric,
                      [&](FabricClient& client) { return Draw(*a, OfFabric(client, a->fabric)); });
  };
}

}  // namespace percs
