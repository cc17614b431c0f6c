// A machine as a drawing: its nodes in groups, its links with their load.
#pragma once

#include <string>
#include <vector>

namespace percs {

struct GraphNode {
  std::string name;
  std::size_t group = 0;
};
struct GraphLink {
  std::string name, link_class;  // "sn0-d0-h0:LR3", "LR"
  std::size_t a = 0, b = 0;      // its nodes
  bool up = true;
  double load = 0;  // share of time of the busier direction, 0 to 1
};
struct Graph {
  std::string title;
  std::vector<std::string> groups;  // drawers in order of supernodes: "sn0-d1"; "blades"
  std::vector<GraphNode> nodes;
  std::vector<GraphLink> links;
  bool live = false;  // loads and states are those of a fabric
};

// For Graphviz: drawers as clusters.
std::string GraphDot(const Graph& graph);
// For Mermaid, of which a few hundred links are the most that it draws.
std::string GraphMermaid(const Graph& graph);
// Hubs in circles of their drawers, drawers of a supernode side by side; a network of switches as
// SpotsOfSwitches (daemon/page/switch_spots.h) places it.
std::string GraphSvg(const Graph& graph);
// A square for each two nodes, or drawers, or supernodes where there are more than a page shows:
// the busiest of the links between them.
std::string GraphMatrix(const Graph& graph);

// The colour of a link, "#rrggbb".
std::string LinkColour(const GraphLink& link);

}  // namespace percs
