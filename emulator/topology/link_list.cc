#include "emulator/topology/link_list.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace percs {
namespace {

constexpr std::size_t kNameMax = 64;
constexpr std::size_t kLinksMax =
    static_cast<std::size_t>(SwitchGraph::kSwitchesMax) * SwitchGraph::kPortsMax / 2;

bool IsSwitchName(absl::string_view name) {
  const auto good = [](unsigned char c) { return absl::ascii_isalnum(c) || c == '-'; };
  return !name.empty() && name.size() <= kNameMax && std::all_of(name.begin(), name.end(), good);
}

// "LR5"; nothing for any other text.
std::optional<PortId> ParsePort(absl::string_view text) {
  int number = 0;
  if (text.size() < 3 || !absl::SimpleAtoi(text.substr(2), &number) || number < 0)
    return std::nullopt;
  if (text.substr(0, 2) == "LL" && number < kLlPorts) return static_cast<PortId>(kLlFirst + number);
  if (text.substr(0, 2) == "LR" && number < kLrPorts) return static_cast<PortId>(kLrFirst + number);
  return std::nullopt;
}

class ListReader {
 public:
  absl::Status Line(absl::string_view line, int number) {
    number_ = number;
    line = line.substr(0, line.find('#'));
    const std::vector<std::string> words =
        absl::StrSplit(line, absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
    if (words.empty()) return absl::OkStatus();
    if (words.size() != 2 && words.size() != 3) {
      return Wrong(fmt::format("{} word{}; write `SWITCH SWITCH` or `SWITCH SWITCH CLASS`",
                               words.size(), words.size() == 1 ? ", which is half a link" : "s"));
    }
    if (graph_.links.size() == kLinksMax)
      return Wrong(fmt::format("more than {} links", kLinksMax));
    SwitchLink link;
    if (words.size() == 3) {
      if (words[2] != "ll" && words[2] != "lr")
        return Wrong(fmt::format("class \"{}\"; write ll or lr", words[2].substr(0, kNameMax)));
      link.link_class = words[2] == "ll" ? LinkClass::kLl : LinkClass::kLr;
    }
    if (auto s = End(words[0], link.link_class, &link.a, &link.port_a); !s.ok()) return s;
    if (auto s = End(words[1], link.link_class, &link.b, &link.port_b); !s.ok()) return s;
    if (link.a == link.b) return Wrong(fmt::format("{} to itself", graph_.names[link.a]));
    graph_.links.push_back(link);
    return absl::OkStatus();
  }
  GraphSpec Take() { return std::move(graph_); }

 private:
  absl::Status Wrong(const std::string& what) const {
    return absl::InvalidArgumentError(fmt::format("line {}: {}", number_, what));
  }
  absl::Status End(const std::string& word, LinkClass link_class, NodeId* node, PortId* port) {
    const std::size_t colon = word.find(':');
    const std::string name = word.substr(0, colon);
    if (!IsSwitchName(name)) {
      return Wrong(
          fmt::format("a word that is no name of a switch: write at most {} letters, "
                      "digits and dashes",
                      kNameMax));
    }
    const auto [at, added] = switches_.try_emplace(name, static_cast<NodeId>(switches_.size()));
    *node = at->second;
    if (added) graph_.names.push_back(name);
    if (switches_.size() > SwitchGraph::kSwitchesMax)
      return Wrong(fmt::format("more than {} switches", SwitchGraph::kSwitchesMax));
    if (colon == std::string::npos) return absl::OkStatus();
    const auto given = ParsePort(word.substr(colon + 1));
    if (!given || ClassOf(*given) != link_class) {
      return Wrong(fmt::format("{} is no port of class {}; write {}", word.substr(0, kNameMax),
                               link_class == LinkClass::kLl ? "ll" : "lr",
                               link_class == LinkClass::kLl ? "LL0 to LL6" : "LR0 to LR23"));
    }
    *port = *given;
    const auto [used, free] = ports_.try_emplace({*node, *given}, number_);
    if (free) return absl::OkStatus();
    return Wrong(fmt::format("{} has a link already, in line {}", word, used->second));
  }

  GraphSpec graph_{.kind = GraphSpec::Kind::kListed};
  absl::flat_hash_map<std::string, NodeId> switches_;
  absl::flat_hash_map<std::pair<NodeId, PortId>, int> ports_;  // given ones: in which line
  int number_ = 0;
};

}  // namespace

absl::StatusOr<GraphSpec> ParseLinkList(const std::string& text) {
  ListReader reader;
  int number = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    if (auto s = reader.Line(line, ++number); !s.ok()) return s;
  }
  return reader.Take();
}

std::string FormatLinkList(const GraphSpec& graph) {
  std::string text;
  const auto end = [&](NodeId node, PortId port) {
    return graph.names[node] + (port == kNoPort ? "" : ":" + PortName(port));
  };
  for (const SwitchLink& link : graph.links) {
    text += fmt::format("{} {} {}\n", end(link.a, link.port_a), end(link.b, link.port_b),
                        link.link_class == LinkClass::kLl ? "ll" : "lr");
  }
  return text;
}

absl::StatusOr<std::vector<int>> ParseDims(absl::string_view text) {
  std::vector<int> dims;
  for (const absl::string_view size : absl::StrSplit(text, 'x')) {
    if (!absl::SimpleAtoi(size, &dims.emplace_back())) {
      return absl::InvalidArgumentError(fmt::format(
          "\"{}\" is not the sizes of dimensions; write for example 4x4", std::string(text)));
    }
  }
  return dims;
}

std::string FormatDims(const std::vector<int>& dims) {
  return fmt::format("{}", fmt::join(dims, "x"));
}

}  // namespace percs
