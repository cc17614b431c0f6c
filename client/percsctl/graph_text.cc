// Drawings that other programs lay out.
#include <fmt/format.h>

#include "client/percsctl/graph.h"

namespace percs {
namespace {

std::string Percent(const GraphLink& link) {
  return link.up ? fmt::format("{:.0f} %", link.load * 100) : "down";
}

}  // namespace

std::string GraphDot(const Graph& graph) {
  std::string text = fmt::format(
      "graph \"{}\" {{\n  label=\"{}\"\n  node [shape=circle fontname=\"sans-serif\" fontsize=9]\n",
      graph.title, graph.title);
  for (std::size_t g = 0; g < graph.groups.size(); ++g) {
    text += fmt::format("  subgraph \"cluster_{0}\" {{\n    label=\"{0}\"\n", graph.groups[g]);
    for (const GraphNode& node : graph.nodes) {
      if (node.group != g) continue;
      text += fmt::format("    \"{}\" [label=\"{}\"]\n", node.name,
                          node.name.substr(node.name.rfind('-') + 1));
    }
    text += "  }\n";
  }
  for (const GraphLink& link : graph.links) {
    text += fmt::format("  \"{}\" -- \"{}\" [color=\"{}\" tooltip=\"{}{}\"{}]\n",
                        graph.nodes[link.a].name, graph.nodes[link.b].name, LinkColour(link),
                        link.name, graph.live ? " " + Percent(link) : "",
                        link.up ? "" : " penwidth=2 style=dashed");
  }
  return text + "}\n";
}

std::string GraphMermaid(const Graph& graph) {
  std::string text = fmt::format("---\ntitle: {}\n---\ngraph LR\n", graph.title);
  for (std::size_t g = 0; g < graph.groups.size(); ++g) {
    text += fmt::format("  subgraph {}\n", graph.groups[g]);
    for (const GraphNode& node : graph.nodes) {
      if (node.group == g) text += fmt::format("    {}\n", node.name);
    }
    text += "  end\n";
  }
  std::string styles;
  for (std::size_t i = 0; i < graph.links.size(); ++i) {
    const GraphLink& link = graph.links[i];
    const std::string label = graph.live ? fmt::format("|{}|", Percent(link)) : "";
    text += fmt::format("  {} {}{} {}\n", graph.nodes[link.a].name, link.up ? "---" : "-.-", label,
                        graph.nodes[link.b].name);
    styles += fmt::format("  linkStyle {} stroke:{}\n", i, LinkColour(link));
  }
  return text + styles;
}

}  // namespace percs
