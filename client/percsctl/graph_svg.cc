// Drawings as SVG, by themselves: places follow from the machine, so nothing has to be laid out.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <numeric>
#include <set>

#include "client/percsctl/graph.h"
#include "daemon/page/switch_spots.h"

namespace percs {
namespace {

constexpr const char* kDown = "#d62728";
constexpr const char* kText = "#222222";
constexpr double kHeader = 46;  // title and legend
constexpr double kMargin = 20, kNodeRadius = 9;
constexpr double kStep = 54;  // between neighbours in a network of switches

struct Colour {
  double red, green, blue;
};
// Idle is pale, full is dark; no red, which is for what is down.
constexpr Colour kIdle{214, 219, 226}, kHalf{66, 146, 198}, kFull{8, 28, 88};

std::string Shade(double load) {
  load = std::clamp(load, 0.0, 1.0);
  const Colour& from = load < 0.5 ? kIdle : kHalf;
  const Colour& to = load < 0.5 ? kHalf : kFull;
  const double share = load < 0.5 ? load * 2 : load * 2 - 1;
  const auto mix = [share](double a, double b) {
    return static_cast<int>(std::lround(a + (b - a) * share));
  };
  return fmt::format("#{:02x}{:02x}{:02x}", mix(from.red, to.red), mix(from.green, to.green),
                     mix(from.blue, to.blue));
}

std::string Escaped(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    escaped += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : std::string(1, c);
  }
  return escaped;
}

std::string State(const Graph& graph, const GraphLink& link) {
  if (!graph.live) return "";
  return link.up ? fmt::format(", load {:.1f} %", link.load * 100) : ", down";
}

std::string Words(double x, double y, int size, const char* anchor, const std::string& text) {
  return fmt::format(
      "<text x='{:.1f}' y='{:.1f}' font-size='{}' text-anchor='{}' fill='{}'>{}</text>\n", x, y,
      size, anchor, kText, Escaped(text));
}

// The opening tag, the title and, of a fabric, what the colours mean.
std::string Begin(const Graph& graph, double width, double height) {
  constexpr double kWidestLetter = 9, kLegendWide = 290;
  width = std::max({width, 24 + kWidestLetter * static_cast<double>(graph.title.size()),
                    graph.live ? kLegendWide : 0});
  std::string text = fmt::format(
      "<svg xmlns='http://www.w3.org/2000/svg' width='{0:.0f}' height='{1:.0f}' "
      "viewBox='0 0 {0:.0f} {1:.0f}' font-family='sans-serif'>\n"
      "<rect width='100%' height='100%' fill='white'/>\n",
      width, height);
  text += Words(12, 18, 13, "start", graph.title);
  if (!graph.live) return text;
  constexpr int kSteps = 10;
  constexpr double kWide = 12, kLegend = 26;
  double x = 12;
  text += Words(x, kLegend + 10, 10, "start", "load 0 %");
  x += 52;
  for (int i = 0; i < kSteps; ++i, x += kWide) {
    text += fmt::format("<rect x='{:.1f}' y='{}' width='{}' height='10' fill='{}'/>\n", x, kLegend,
                        kWide, Shade((i + 0.5) / kSteps));
  }
  text += Words(x + 6, kLegend + 10, 10, "start", "100 %");
  text += fmt::format("<rect x='{:.1f}' y='{}' width='{}' height='10' fill='{}'/>\n", x + 50,
                      kLegend, kWide, kDown);
  return text + Words(x + 50 + kWide + 6, kLegend + 10, 10, "start", "down");
}

// "sn0" of "sn0-d1".
std::string SupernodeOf(const std::string& group) { return group.substr(0, group.rfind('-')); }

// Where everything is: supernodes in a square, their drawers in a smaller one, hubs in circles.
class Places {
 public:
  explicit Places(const Graph& graph) : graph_(graph) {
    for (const GraphNode& node : graph.nodes) ++members_[node.group];
    std::size_t most = 1;
    for (const auto& [group, count] : members_) most = std::max(most, count);
    radius_ = std::max(34.0, 15.0 * static_cast<double>(most) / std::numbers::pi);
    cell_ = 2 * radius_ + 48;
    for (std::size_t g = 0; g < graph.groups.size(); ++g) {
      std::vector<std::size_t>& drawers = DrawersOf(SupernodeOf(graph.groups[g]));
      drawers.push_back(g);
      drawers_most_ = std::max(drawers_most_, drawers.size());
    }
    for (std::size_t s = 0; s < supernodes_.size(); ++s) {
      const Spot corner = Corner(s);
      for (std::size_t d = 0; d < supernodes_[s].second.size(); ++d) {
        const Spot place = Cell(d, drawers_most_);
        centres_[supernodes_[s].second[d]] = {corner.x + (place.x + 0.5) * cell_,
                                              corner.y + (place.y + 0.5) * cell_};
      }
    }
    std::vector<std::size_t> order(graph.nodes.size());  // h9 before h10
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&graph](std::size_t a, std::size_t b) {
      const std::string &left = graph.nodes[a].name, &right = graph.nodes[b].name;
      return std::pair(left.size(), left) < std::pair(right.size(), right);
    });
    nodes_.resize(graph.nodes.size());
    std::map<std::size_t, std::size_t> placed;
    for (const std::size_t n : order) {
      const std::size_t group = graph.nodes[n].group;
      const double angle = 2 * std::numbers::pi * static_cast<double>(placed[group]++) /
                               static_cast<double>(members_[group]) -
                           std::numbers::pi / 2;
      const Spot centre = centres_[group];
      nodes_[n] = {centre.x + radius_ * std::cos(angle), centre.y + radius_ * std::sin(angle)};
    }
  }

  double width() const { return kMargin + Across() * (Wide() + kMargin); }
  double height() const {
    const auto rows = static_cast<double>(Rows(supernodes_.size()));
    return kHeader + kMargin + rows * (High() + kMargin);
  }
  const std::vector<Spot>& nodes() const { return nodes_; }

  std::string Boxes() const {
    std::string text;
    for (std::size_t s = 0; s < supernodes_.size(); ++s) {
      const Spot corner = Corner(s);
      text += Box(corner.x, corner.y, Wide(), High(), "#f7f7f7", "#bbbbbb");
      text += Words(corner.x + 2, corner.y - 5, 11, "start", supernodes_[s].first);
    }
    const double side = cell_ - 10;
    for (const auto& [group, at] : centres_) {
      text += Box(at.x - side / 2, at.y - side / 2 + 6, side, side - 6, "white", "#dddddd");
    }
    return text;
  }
  // Names of drawers, which are drawn above their links.
  std::string Names() const {
    std::string text = "<g stroke='white' stroke-width='4' paint-order='stroke'>\n";
    for (const auto& [group, at] : centres_)
      text += Words(at.x, at.y + 3, 10, "middle", graph_.groups[group]);
    return text + "</g>\n";
  }

 private:
  static std::size_t Columns(std::size_t count) {
    return static_cast<std::size_t>(std::ceil(std::sqrt(static_cast<double>(count))));
  }
  static std::size_t Rows(std::size_t count) {
    return (count + Columns(count) - 1) / Columns(count);
  }
  // Column and row of place `number` in a square of `count` places.
  static Spot Cell(std::size_t number, std::size_t count) {
    const std::size_t row = number / Columns(count);
    return {static_cast<double>(number % Columns(count)), static_cast<double>(row)};
  }
  static std::string Box(double x, double y, double width, double height, const char* fill,
                         const char* line) {
    return fmt::format(
        "<rect x='{:.1f}' y='{:.1f}' width='{:.1f}' height='{:.1f}' rx='6' fill='{}' "
        "stroke='{}'/>\n",
        x, y, width, height, fill, line);
  }
  std::vector<std::size_t>& DrawersOf(const std::string& supernode) {
    for (auto& [name, drawers] : supernodes_) {
      if (name == supernode) return drawers;
    }
    return supernodes_.emplace_back(supernode, std::vector<std::size_t>()).second;
  }
  double Across() const { return static_cast<double>(Columns(supernodes_.size())); }
  double Wide() const { return cell_ * static_cast<double>(Columns(drawers_most_)); }
  double High() const { return cell_ * static_cast<double>(Rows(drawers_most_)); }
  Spot Corner(std::size_t supernode) const {
    const Spot place = Cell(supernode, supernodes_.size());
    return {kMargin + place.x * (Wide() + kMargin),
            kHeader + kMargin + place.y * (High() + kMargin)};
  }

  const Graph& graph_;
  std::map<std::size_t, std::size_t> members_;                                // by group
  std::vector<std::pair<std::string, std::vector<std::size_t>>> supernodes_;  // with their groups
  std::size_t drawers_most_ = 1;
  double radius_ = 0, cell_ = 0;
  std::map<std::size_t, Spot> centres_;  // of groups
  std::vector<Spot> nodes_;
};

// What a matrix has a row and a column for: nodes, drawers or supernodes.
std::vector<std::string> MatrixNames(const Graph& graph) {
  constexpr std::size_t kMost = 256;
  std::vector<std::string> names;
  for (const GraphNode& node : graph.nodes) names.push_back(node.name);
  for (int cut = 0; cut < 2; ++cut) {
    std::vector<std::string> distinct = names;
    std::sort(distinct.begin(), distinct.end());
    const auto end = std::unique(distinct.begin(), distinct.end());
    if (static_cast<std::size_t>(end - distinct.begin()) <= kMost) break;
    for (std::string& name : names) name = name.substr(0, name.rfind('-'));
  }
  return names;
}

// A straight line, or past the switches between the ends of a link along a row or column of them.
std::string Path(const Spot& a, const Spot& b, bool past_others) {
  const double x = (a.x + b.x) / 2, y = (a.y + b.y) / 2;
  // Of its length, to one side; less than to the next row.
  constexpr double kBend = 0.15, kBendMost = 0.9 * kStep;
  const double length = std::hypot(a.x - b.x, a.y - b.y);
  const double bend = past_others ? std::min(kBend, kBendMost / length) : 0;
  return fmt::format("M{:.1f} {:.1f}Q{:.1f} {:.1f} {:.1f} {:.1f}", a.x, a.y, x + bend * (b.y - a.y),
                     y - bend * (b.x - a.x), b.x, b.y);
}

// Switches of a drawing by row and by column.
struct Rows {
  explicit Rows(const std::vector<Spot>& spots) {
    for (const Spot& spot : spots) {
      rows[spot.y].insert(spot.x);
      columns[spot.x].insert(spot.y);
    }
  }
  // Whether a straight line between these switches passes over others.
  bool Between(const Spot& a, const Spot& b) const {
    const auto between = [](const std::set<double>& all, double from, double to) {
      const auto next = all.upper_bound(std::min(from, to));
      return next != all.end() && *next < std::max(from, to);
    };
    return (a.y == b.y && between(rows.at(a.y), a.x, b.x)) ||
           (a.x == b.x && between(columns.at(a.x), a.y, b.y));
  }

  std::map<double, std::set<double>> rows, columns;
};

// Busy links above idle ones, and those that are down above all. `switches`: of a drawing of them.
std::string DrawnLinks(const Graph& graph, const std::vector<Spot>& nodes,
                       const Rows* switches = nullptr) {
  std::vector<const GraphLink*> links;
  for (const GraphLink& link : graph.links) links.push_back(&link);
  std::stable_sort(links.begin(), links.end(), [](const GraphLink* a, const GraphLink* b) {
    return std::pair(!a->up, a->load) < std::pair(!b->up, b->load);
  });
  std::string text;
  for (const GraphLink* link : links) {
    const Spot a = nodes[link->a], b = nodes[link->b];
    const bool past_others = switches != nullptr && switches->Between(a, b);
    text += fmt::format("<path d='{}' fill='none' stroke='{}' stroke-width='{}'{}>",
                        Path(a, b, past_others), LinkColour(*link), link->up ? "1" : "2",
                        link->up ? "" : " stroke-dasharray='5 3'");
    text += fmt::format("<title>{} to {}{}</title></path>\n", Escaped(link->name),
                        Escaped(graph.nodes[link->b].name), State(graph, *link));
  }
  return text;
}

std::string Circle(const GraphNode& node, const Spot& at) {
  return fmt::format(
      "<circle cx='{:.1f}' cy='{:.1f}' r='{}' fill='white' stroke='#555555'><title>{}</title>"
      "</circle>\n",
      at.x, at.y, kNodeRadius, Escaped(node.name));
}

std::string SvgOfSwitches(const Graph& graph, std::vector<Spot> spots) {
  constexpr std::size_t kLettersInside = 3;
  Spot end;
  for (Spot& spot : spots) {
    spot = {2 * kMargin + spot.x * kStep, kHeader + 2 * kMargin + spot.y * kStep};
    end = {std::max(end.x, spot.x), std::max(end.y, spot.y)};
  }
  const Rows rows(spots);
  std::string text = Begin(graph, end.x + 2 * kMargin, end.y + 2 * kMargin);
  text += DrawnLinks(graph, spots, &rows) +
          "<g stroke='white' stroke-width='3' paint-order='stroke'>\n";
  for (std::size_t n = 0; n < spots.size(); ++n) {
    const std::string& name = graph.nodes[n].name;
    text += Circle(graph.nodes[n], spots[n]);
    const bool inside = name.size() <= kLettersInside;
    text += Words(spots[n].x, spots[n].y + (inside ? 3 : kNodeRadius + 9), 8, "middle", name);
  }
  return text + "</g>\n</svg>\n";
}

}  // namespace

std::string LinkColour(const GraphLink& link) { return link.up ? Shade(link.load) : kDown; }

std::string GraphSvg(const Graph& graph) {
  std::vector<std::string> names;
  for (const GraphNode& node : graph.nodes) names.push_back(node.name);
  if (const std::vector<Spot> spots = SpotsOfSwitches(names); !spots.empty())
    return SvgOfSwitches(graph, spots);
  const Places places(graph);
  std::string text = Begin(graph, places.width(), places.height()) + places.Boxes() +
                     DrawnLinks(graph, places.nodes()) + places.Names();
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Spot at = places.nodes()[n];
    text += Circle(graph.nodes[n], at);
    text += Words(at.x, at.y + 3, 8, "middle", names[n].substr(names[n].rfind('-') + 1));
  }
  return text + "</svg>\n";
}

std::string GraphMatrix(const Graph& graph) {
  constexpr double kLabels = 90, kPage = 900, kCellMost = 22, kCellLeast = 3, kLabelLeast = 8;
  const std::vector<std::string> of_node = MatrixNames(graph);
  std::vector<std::string> names;
  std::map<std::string, std::size_t> rows;
  for (const std::string& name : of_node) {
    if (rows.emplace(name, names.size()).second) names.push_back(name);
  }
  const double cell = std::clamp(kPage / static_cast<double>(names.size()), kCellLeast, kCellMost);
  const double side = cell * static_cast<double>(names.size());
  std::map<std::pair<std::size_t, std::size_t>, GraphLink> cells;
  for (const GraphLink& link : graph.links) {
    const std::size_t a = rows[of_node[link.a]], b = rows[of_node[link.b]];
    for (const auto& place : {std::pair(a, b), std::pair(b, a)}) {
      const auto [at, added] = cells.emplace(place, link);
      GraphLink& worst = at->second;
      if (!added && std::pair(!link.up, link.load) > std::pair(!worst.up, worst.load)) worst = link;
    }
  }
  std::string text = Begin(graph, kLabels + side + 20, kHeader + kLabels + side + 20) +
                     fmt::format(
                         "<rect x='{}' y='{}' width='{:.1f}' height='{:.1f}' fill='none' "
                         "stroke='#bbbbbb'/>\n",
                         kLabels, kHeader + kLabels, side, side);
  for (const auto& [place, link] : cells) {
    text += fmt::format(
        "<rect x='{:.1f}' y='{:.1f}' width='{:.1f}' height='{:.1f}' fill='{}'>"
        "<title>{} / {}: {}{}</title></rect>\n",
        kLabels + cell * static_cast<double>(place.second),
        kHeader + kLabels + cell * static_cast<double>(place.first), cell, cell, LinkColour(link),
        Escaped(names[place.first]), Escaped(names[place.second]), Escaped(link.name),
        State(graph, link));
  }
  const auto every = static_cast<std::size_t>(std::max(1.0, std::ceil(kLabelLeast / cell)));
  for (std::size_t i = 0; i < names.size(); i += every) {
    const double at = cell * (static_cast<double>(i) + 0.5) + 3;
    text += Words(kLabels - 4, kHeader + kLabels + at, 8, "end", names[i]);
    text += fmt::format("<g transform='translate({:.1f} {:.1f}) rotate(-90)'>", kLabels + at,
                        kHeader + kLabels - 4) +
            Words(0, 0, 8, "start", names[i]) + "</g>\n";
  }
  return text + "</svg>\n";
}

}  // namespace percs
