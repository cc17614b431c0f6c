// Names of hubs and links, and what to suggest when a name does not exist.
#include <algorithm>
#include <charconv>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "emulator/topology/find_names.h"
#include "emulator/topology/topology.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace percs {

std::string PortName(PortId port) {
  switch (ClassOf(port)) {
    case LinkClass::kLl:
      return fmt::format("LL{}", port - kLlFirst);
    case LinkClass::kLr:
      return fmt::format("LR{}", port - kLrFirst);
    case LinkClass::kD:
      return fmt::format("D{}", port - kDFirst);
    case LinkClass::kHfi:
      return fmt::format("HFI{}", port - kHfiFirst);
    case LinkClass::kService:
      return "service";
    case LinkClass::kIb:
      break;  // of no port of a hub
  }
  return fmt::format("port{}", port);
}

namespace {

int EditDistance(std::string_view a, std::string_view b) {
  std::vector<int> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int>(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    int diagonal = std::exchange(row[0], static_cast<int>(i));
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const int change = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({change, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

// "a, b or c": the three existing names that take the fewest edits.
std::string Nearest(std::string_view name, const std::vector<std::string>& existing) {
  // A name from outside may have any length; characters beyond the longest real name are ignored.
  name = name.substr(0, 64);
  std::vector<std::pair<int, std::size_t>> ranked;
  ranked.reserve(existing.size());
  for (std::size_t i = 0; i < existing.size(); ++i)
    ranked.emplace_back(EditDistance(name, existing[i]), i);
  const std::size_t count = std::min<std::size_t>(3, ranked.size());
  std::partial_sort(ranked.begin(), ranked.begin() + static_cast<std::ptrdiff_t>(count),
                    ranked.end());
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    text += (i == 0 ? "" : i + 1 == count ? " or " : ", ") + existing[ranked[i].second];
  }
  return text;
}

// A decimal number after `prefix`, without sign or leading zeros; advances `text`.
std::optional<int> TakeNumber(std::string_view& text, std::string_view prefix) {
  if (text.substr(0, prefix.size()) != prefix) return std::nullopt;
  const std::string_view digits = text.substr(prefix.size());
  int value = 0;
  if (digits.empty() || digits[0] < '0' || digits[0] > '9') return std::nullopt;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const auto length = static_cast<std::size_t>(end - digits.data());
  if (error != std::errc() || (digits[0] == '0' && length > 1)) return std::nullopt;
  text = digits.substr(length);
  return value;
}

absl::Status NoneNamed(const std::string& name, const std::vector<std::string>& names,
                       const char* what) {
  return absl::NotFoundError(
      fmt::format("no {} is named \"{}\"; the nearest are {}", what, name, Nearest(name, names)));
}

}  // namespace

std::string Topology::NodeName(NodeId node) const {
  if (is_group(node)) return spec_.multicast[group_of(node)].name;
  if (node >= nodes()) return fmt::format("hub{}", node);
  if (is_blade(node)) return spec_.blades[node - hubs_].name;
  if (is_crossbar(node)) return tree_->CrossbarName(crossbar_of(node));
  if (graph_) return graph_->name(node);
  const int hub = hub_in_supernode(node);
  return fmt::format("sn{}-d{}-h{}", supernode_of(node), hub / spec_.hubs, hub % spec_.hubs);
}

std::string Topology::LinkName(LinkEnd end) const {
  const std::string name = NodeName(end.node);
  if (is_blade(end.node)) return name + ":N0";
  if (!is_crossbar(end.node) || IsHfi(end.port)) return name + ":" + PortName(end.port);
  return end.port == kBladePort ? name + ":G0" : fmt::format("{}:p{}", name, end.port - kIbFirst);
}

std::optional<NodeId> Topology::SwitchNamed(const std::string& name) const {
  if (!graph_) return std::nullopt;
  const auto found = graph_names_->find(name);
  return found == graph_names_->end() ? std::nullopt : std::optional<NodeId>(found->second);
}

std::vector<NodeId> HubsNamed(const Topology& topology, const std::string& name) {
  if (const auto node = topology.SwitchNamed(name)) return {*node};
  const TopologySpec& spec = topology.spec();
  NodeId first = 0;
  int count = name == "all" ? static_cast<int>(topology.hubs()) : 0;
  std::string_view rest = name;
  if (const auto supernode = TakeNumber(rest, "sn");
      supernode && !topology.graph() && *supernode < spec.supernodes) {
    first = topology.node(*supernode, 0);
    count = rest.empty() ? topology.hubs_per_supernode() : 0;
    if (const auto drawer = TakeNumber(rest, "-d"); drawer && *drawer < spec.drawers) {
      first += static_cast<NodeId>(*drawer * spec.hubs);
      count = rest.empty() ? spec.hubs : 0;
      if (const auto hub = TakeNumber(rest, "-h"); hub && *hub < spec.hubs) {
        first += static_cast<NodeId>(*hub);
        count = rest.empty() ? 1 : 0;
      }
    }
  }
  std::vector<NodeId> hubs(static_cast<std::size_t>(count));
  std::iota(hubs.begin(), hubs.end(), first);
  return hubs;
}

std::optional<NodeId> FindNode(const Topology& topology, const std::string& name) {
  if (const auto hubs = HubsNamed(topology, name);
      hubs.size() == 1 && topology.NodeName(hubs[0]) == name) {
    return hubs[0];
  }
  const auto& blades = topology.spec().blades;
  for (std::size_t blade = 0; blade < blades.size(); ++blade) {
    if (blades[blade].name == name) return topology.hubs() + static_cast<NodeId>(blade);
  }
  if (topology.has_tree() && (name.rfind("cu", 0) == 0 || name.rfind("sw", 0) == 0)) {
    if (const auto crossbar = topology.tree().ParseCrossbar(name); crossbar.ok())
      return topology.crossbar_node(*crossbar);
  }
  return std::nullopt;
}

std::optional<NodeId> FindDestination(const Topology& topology, const std::string& name) {
  const auto& groups = topology.spec().multicast;
  for (std::size_t group = 0; group < groups.size(); ++group) {
    if (groups[group].name == name) return topology.nodes() + static_cast<NodeId>(group);
  }
  return FindNode(topology, name);
}

absl::StatusOr<NodeId> Topology::ParseNode(const std::string& name) const {
  if (const auto node = FindNode(*this, name)) return *node;
  return NoneNamed(name, NodeNames(),
                   tree_          ? "hub, blade or crossbar"
                   : blades() > 0 ? "hub or blade"
                                  : "hub");
}

absl::StatusOr<NodeId> Topology::ParseDestination(const std::string& name) const {
  if (const auto destination = FindDestination(*this, name)) return *destination;
  if (groups_.empty()) return ParseNode(name);  // for its words
  std::vector<std::string> names = NodeNames();
  for (const auto& group : spec_.multicast) names.push_back(group.name);
  return NoneNamed(name, names,
                   blades() > 0 ? "hub, blade or multicast group" : "hub or multicast group");
}

std::vector<std::string> Topology::NodeNames() const {
  std::vector<std::string> names;
  names.reserve(nodes());
  for (NodeId n = 0; n < nodes(); ++n) names.push_back(NodeName(n));
  return names;
}

absl::StatusOr<LinkEnd> Topology::ParseLink(const std::string& name) const {
  const std::size_t colon = name.find(':'), slash = name.find('/');
  if (colon == std::string::npos && slash == std::string::npos) {
    const std::vector<LinkEnd> links = Links();
    if (links.empty()) return absl::NotFoundError("this machine has no links");
    const LinkEnd one = links.front();
    return absl::InvalidArgumentError(
        fmt::format("\"{}\" is not a link name; write a link as {} or by its two ends, {}/{}", name,
                    LinkName(one), NodeName(one.node), NodeName(Peer(one.node, one.port).node)));
  }
  if (colon != std::string::npos && (slash == std::string::npos || colon < slash)) {
    const auto node = ParseNode(name.substr(0, colon));
    if (!node.ok()) return node.status();
    std::vector<std::string> names;
    for (int p = 0; p < kLinkPorts; ++p) {
      const LinkEnd end{*node, static_cast<PortId>(p)};
      if (!connected(end.node, end.port)) continue;
      names.push_back(LinkName(end));
      if (names.back() == name) return end;
    }
    return NoneNamed(name, names, "link");
  }
  const auto a = ParseNode(name.substr(0, slash));
  if (!a.ok()) return a.status();
  const auto b = ParseNode(name.substr(slash + 1));
  if (!b.ok()) return b.status();
  std::vector<LinkEnd> between;
  std::vector<std::string> names, from_a;
  for (int p = 0; p < kLinkPorts; ++p) {
    const PortId port = static_cast<PortId>(p);
    const LinkEnd peer = Peer(*a, port);
    if (peer.node == kNoNode) continue;
    from_a.push_back(NodeName(*a) + "/" + NodeName(peer.node));
    if (peer.node != *b) continue;
    between.push_back({*a, port});
    names.push_back(LinkName(between.back()));
  }
  if (between.size() == 1) return between[0];
  if (between.empty()) {
    return absl::NotFoundError(fmt::format("no link joins {} and {}; the nearest are {}",
                                           NodeName(*a), NodeName(*b), Nearest(name, from_a)));
  }
  return absl::InvalidArgumentError(fmt::format("\"{}\" names {} parallel links; write one of {}",
                                                name, between.size(), fmt::join(names, ", ")));
}

}  // namespace percs
