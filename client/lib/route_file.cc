#include "client/lib/route_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "emulator/topology/switch_graph.h"

namespace percs {
namespace {

using OrderedJson = nlohmann::ordered_json;
constexpr const char* kFormat = "percs-routes-1";
constexpr const char* kHere = "here";  // a member of a multicast group, the source of the clock

std::string PortsText(PortMask mask) {
  if (mask & HubTables::kDeliverHere) {  // multicast entries only
    const std::string others = PortsText(mask & ~HubTables::kDeliverHere);
    return others.empty() ? kHere : fmt::format("{} {}", others, kHere);
  }
  std::string text;
  for (; mask; mask &= mask - 1) {
    if (!text.empty()) text += ' ';
    text += PortName(static_cast<PortId>(std::countr_zero(mask)));
  }
  return text;
}

absl::StatusOr<PortMask> ParsePorts(const std::string& text, bool multicast = false) {
  std::istringstream words(text);
  PortMask mask = 0;
  for (std::string word; words >> word;) {
    if (multicast && word == kHere) {
      mask |= HubTables::kDeliverHere;
      continue;
    }
    PortId port = 0;
    while (port < kLinkPorts && PortName(port) != word) ++port;
    if (port == kLinkPorts) {
      return absl::InvalidArgumentError(fmt::format(
          "\"{}\" is not a port; ports are LL0 to LL6, LR0 to LR23 and D0 to D15", word));
    }
    mask |= PortBit(port);
  }
  return mask;
}

// What a node's tables are used for, in the order of the file.
struct Use {
  TableKind kind;
  PortId port;
  std::string name;
};
const std::vector<Use>& Uses() {
  static const std::vector<Use>* const uses = [] {
    auto* all = new std::vector<Use>{{TableKind::kDirect, kNoPort, "source direct"},
                                     {TableKind::kStriped, kNoPort, "source striped"},
                                     {TableKind::kIndirect, kNoPort, "source indirect"}};
    for (const TableKind kind : {TableKind::kDirect, TableKind::kIndirect}) {
      for (PortId port = 0; port < kLinkPorts; ++port) {
        all->push_back({kind, port,
                        fmt::format("{} {}", PortName(port),
                                    kind == TableKind::kDirect ? "direct" : "indirect")});
      }
    }
    return all;
  }();
  return *uses;
}

OrderedJson MasksJson(const std::vector<PortMask>& masks) {
  OrderedJson json = OrderedJson::array();
  for (const PortMask mask : masks) json.push_back(PortsText(mask));
  return json;
}

// The port of a node of the InfiniBand tree, -1 for none.
int ForwardingNumber(PortId port) { return port == kNoPort ? -1 : port; }

OrderedJson NodeJson(const std::string& name, const HubTables& hub) {
  OrderedJson tables = OrderedJson::array(), closed = OrderedJson::array();
  std::vector<const RouteTable*> seen;
  for (const Use& use : Uses()) {
    const RouteTable* table = hub.Table(use.kind, use.port).get();
    auto found = std::find_if(seen.begin(), seen.end(),
                              [&](const RouteTable* other) { return *other == *table; });
    if (found == seen.end()) {
      found = seen.insert(seen.end(), table);
      tables.push_back({{"of", OrderedJson::array()},
                        {"intra", MasksJson(table->intra)},
                        {"inter", MasksJson(table->inter)}});
    }
    tables[static_cast<std::size_t>(found - seen.begin())]["of"].push_back(use.name);
  }
  for (const std::uint32_t c : hub.closed_middles) closed.push_back({c >> 16, c & 0xffff});
  OrderedJson node = {
      {"node", name}, {"tables", std::move(tables)}, {"closed_middles", std::move(closed)}};
  if (!hub.multicast.empty()) node["multicast"] = MasksJson(hub.multicast);
  if (hub.clock != 0) node["clock"] = PortsText(hub.clock);
  for (const PortId port : hub.forwarding) node["forwarding"].push_back(ForwardingNumber(port));
  if (!hub.detours.empty()) node["detours"] = hub.detours;
  return node;
}

class NodeReader {
 public:
  NodeReader(const RouteFile& file, const OrderedJson& json) : file_(file), json_(json) {}

  absl::StatusOr<HubTables> Read() {
    HubTables hub;
    std::vector<bool> filled(Uses().size());
    for (const OrderedJson& table : json_.at("tables")) {
      auto read = ReadTable(table);
      if (!read.ok()) return read.status();
      const auto shared = std::make_shared<const RouteTable>(*std::move(read));
      for (const OrderedJson& name : table.at("of")) {
        if (absl::Status s = Fill(name.get<std::string>(), shared, &filled, &hub); !s.ok())
          return s;
      }
    }
    for (std::size_t i = 0; i < filled.size(); ++i) {
      if (!filled[i]) return Error(fmt::format("table \"{}\" is missing", Uses()[i].name));
    }
    if (absl::Status s = ReadClosed(&hub.closed_middles); !s.ok()) return s;
    if (absl::Status s = ReadMulticast(&hub.multicast); !s.ok()) return s;
    if (absl::Status s = ReadForwarding(&hub.forwarding); !s.ok()) return s;
    if (absl::Status s = ReadDetours(hub.multicast.size(), &hub.detours); !s.ok()) return s;
    if (json_.contains("clock")) {
      const auto clock = ParsePorts(json_.at("clock").get<std::string>(), /*multicast=*/true);
      if (!clock.ok()) return Error("clock: " + std::string(clock.status().message()));
      hub.clock = *clock;
    }
    return hub;
  }

 private:
  absl::Status Error(const std::string& what) const {
    return absl::InvalidArgumentError(
        fmt::format("{}: {}", json_.at("node").get<std::string>(), what));
  }
  absl::StatusOr<RouteTable> ReadTable(const OrderedJson& json) const {
    RouteTable table;
    const auto read = [&](const char* part, int size,
                          std::vector<PortMask>* masks) -> absl::Status {
      const OrderedJson& entries = json.at(part);
      if (static_cast<int>(entries.size()) != size) {
        return Error(fmt::format("{} has {} entries, not {}", part, entries.size(), size));
      }
      for (const OrderedJson& entry : entries) {
        auto mask = ParsePorts(entry.get<std::string>());
        if (!mask.ok()) {
          return Error(fmt::format("{} entry {}: {}", part, masks->size(),
                                   std::string(mask.status().message())));
        }
        masks->push_back(*mask);
      }
      return absl::OkStatus();
    };
    if (absl::Status s = read("intra", file_.hubs_per_supernode, &table.intra); !s.ok()) return s;
    if (absl::Status s = read("inter", file_.supernodes, &table.inter); !s.ok()) return s;
    return table;
  }
  absl::Status Fill(const std::string& name, const std::shared_ptr<const RouteTable>& table,
                    std::vector<bool>* filled, HubTables* hub) const {
    std::size_t i = 0;
    while (i < Uses().size() && Uses()[i].name != name) ++i;
    if (i == Uses().size()) return Error(fmt::format("there is no table \"{}\"", name));
    if ((*filled)[i]) return Error(fmt::format("table \"{}\" appears twice", name));
    (*filled)[i] = true;
    const Use& use = Uses()[i];
    auto& slot =
        use.port < kLinkPorts
            ? (use.kind == TableKind::kDirect ? hub->port_direct : hub->port_indirect)[use.port]
        : use.kind == TableKind::kDirect  ? hub->source_direct
        : use.kind == TableKind::kStriped ? hub->source_striped
                                          : hub->source_indirect;
    slot = table;
    return absl::OkStatus();
  }
  absl::Status ReadMulticast(std::vector<PortMask>* masks) const {
    if (!json_.contains("multicast")) return absl::OkStatus();
    for (const OrderedJson& entry : json_.at("multicast")) {
      const auto mask = ParsePorts(entry.get<std::string>(), /*multicast=*/true);
      if (!mask.ok()) {
        return Error(fmt::format("multicast entry {}: {}", masks->size(),
                                 std::string(mask.status().message())));
      }
      masks->push_back(*mask);
    }
    return absl::OkStatus();
  }
  absl::Status ReadForwarding(std::vector<PortId>* ports) const {
    if (!json_.contains("forwarding")) return absl::OkStatus();
    for (const OrderedJson& entry : json_.at("forwarding")) {
      const int port = entry.get<int>();
      if (port < -1 || port >= kLinkPorts) {
        return Error(
            fmt::format("forwarding entry {}: {} is no port; write 0 to {}, or -1 for none",
                        ports->size(), port, kLinkPorts - 1));
      }
      ports->push_back(port < 0 ? kNoPort : static_cast<PortId>(port));
    }
    return absl::OkStatus();
  }
  // Groups are destinations too, numbered after the hubs.
  absl::Status ReadDetours(std::size_t groups, std::vector<NodeId>* detours) const {
    if (!json_.contains("detours")) return absl::OkStatus();
    const std::int64_t last = std::int64_t{file_.hubs_per_supernode} * file_.supernodes +
                              static_cast<std::int64_t>(groups) - 1;
    for (const OrderedJson& entry : json_.at("detours")) {
      const auto destination = entry.get<std::int64_t>();
      if (destination < 0 || destination > last) {
        return Error(
            fmt::format("detours: there is no destination {}; write 0 to {}", destination, last));
      }
      detours->push_back(static_cast<NodeId>(destination));
    }
    std::sort(detours->begin(), detours->end());
    detours->erase(std::unique(detours->begin(), detours->end()), detours->end());
    return absl::OkStatus();
  }
  absl::Status ReadClosed(std::vector<std::uint32_t>* closed) const {
    for (const OrderedJson& pair : json_.at("closed_middles")) {
      const int destination = pair.at(0).get<int>(), middle = pair.at(1).get<int>();
      if (destination < 0 || middle < 0 || std::max(destination, middle) >= file_.supernodes) {
        return Error(fmt::format("closed_middles: [{}, {}] is outside supernodes 0 to {}",
                                 destination, middle, file_.supernodes - 1));
      }
      closed->push_back(HubTables::ClosedMiddle(destination, middle));
    }
    std::sort(closed->begin(), closed->end());
    closed->erase(std::unique(closed->begin(), closed->end()), closed->end());
    return absl::OkStatus();
  }

  const RouteFile& file_;
  const OrderedJson& json_;
};

absl::StatusOr<RouteFile> ReadJson(const OrderedJson& json) {
  if (json.at("format") != kFormat) {
    return absl::InvalidArgumentError(
        fmt::format("format is {}, not \"{}\"", json.at("format").dump(), kFormat));
  }
  RouteFile file;
  file.epoch = json.at("epoch").get<Epoch>();
  file.supernodes = json.at("supernodes").get<int>();
  file.hubs_per_supernode = json.at("hubs_per_supernode").get<int>();
  for (const OrderedJson& node : json.at("nodes")) {
    auto tables = NodeReader(file, node).Read();
    if (!tables.ok()) return tables.status();
    file.names.push_back(node.at("node").get<std::string>());
    file.tables.push_back(std::make_shared<const HubTables>(*std::move(tables)));
  }
  return file;
}

void DiffMasks(const std::string& place, const std::vector<PortMask>& a,
               const std::vector<PortMask>& b, std::vector<std::string>* lines) {
  const auto text = [](const std::vector<PortMask>& masks, std::size_t i) {
    const std::string ports = i < masks.size() ? PortsText(masks[i]) : "";
    return ports.empty() ? std::string("none") : ports;
  };
  for (std::size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    if (i < a.size() && i < b.size() && a[i] == b[i]) continue;
    lines->push_back(fmt::format("{} {}: {} -> {}", place, i, text(a, i), text(b, i)));
  }
}

void DiffTable(const std::string& place, const RouteTable& before, const RouteTable& after,
               std::vector<std::string>* lines) {
  DiffMasks(place + " intra", before.intra, after.intra, lines);
  DiffMasks(place + " inter", before.inter, after.inter, lines);
}

}  // namespace

RouteFile MakeRouteFile(const Topology& topology, Epoch epoch, const std::vector<NodeId>& nodes,
                        TableSet tables) {
  RouteFile file{
      topology.supernodes(), topology.hubs_per_supernode(), epoch, {}, std::move(tables)};
  for (const NodeId node : nodes) file.names.push_back(topology.NodeName(node));
  return file;
}

std::string PrintRoutes(const RouteFile& file) {
  OrderedJson nodes = OrderedJson::array();
  for (std::size_t i = 0; i < file.tables.size(); ++i) {
    nodes.push_back(NodeJson(file.names[i], *file.tables[i]));
  }
  const OrderedJson json = {{"format", kFormat},
                            {"epoch", file.epoch},
                            {"supernodes", file.supernodes},
                            {"hubs_per_supernode", file.hubs_per_supernode},
                            {"nodes", std::move(nodes)}};
  return json.dump(1) + "\n";
}

absl::StatusOr<RouteFile> ParseRoutes(const std::string& text) {
  try {
    return ReadJson(OrderedJson::parse(text));
  } catch (const nlohmann::json::exception& error) {
    return absl::InvalidArgumentError(fmt::format("not a file of route tables: {}", error.what()));
  }
}

absl::StatusOr<RouteFile> ReadRouteFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  if (!in || !(text << in.rdbuf())) {
    return absl::NotFoundError(fmt::format("{}: cannot be read", path));
  }
  auto file = ParseRoutes(text.str());
  if (file.ok()) return file;
  return absl::Status(file.status().code(),
                      fmt::format("{}: {}", path, std::string(file.status().message())));
}

absl::Status CheckRouteFile(const RouteFile& file, const Topology& topology) {
  if (file.names.size() != topology.nodes()) {
    return absl::InvalidArgumentError(fmt::format(
        "route tables of {} nodes, but the machine has {}", file.names.size(), topology.nodes()));
  }
  for (NodeId node = 0; node < topology.nodes(); ++node) {
    if (file.names[node] == topology.NodeName(node)) continue;
    return absl::InvalidArgumentError(fmt::format("found route tables of {}, expected those of {}",
                                                  file.names[node], topology.NodeName(node)));
  }
  return absl::OkStatus();
}

std::vector<std::string> DiffRoutes(const RouteFile& before, const RouteFile& after) {
  std::vector<std::string> lines;
  const auto find = [](const RouteFile& file, const std::string& name) {
    return static_cast<std::size_t>(std::find(file.names.begin(), file.names.end(), name) -
                                    file.names.begin());
  };
  for (std::size_t i = 0; i < before.names.size(); ++i) {
    const std::string& name = before.names[i];
    const std::size_t j = i < after.names.size() && after.names[i] == name ? i : find(after, name);
    if (j == after.names.size()) {
      lines.push_back(name + ": only in the first");
      continue;
    }
    const HubTables &a = *before.tables[i], &b = *after.tables[j];
    for (const Use& use : Uses()) {
      const auto &x = a.Table(use.kind, use.port), &y = b.Table(use.kind, use.port);
      if (x != y) DiffTable(fmt::format("{} {}", name, use.name), *x, *y, &lines);
    }
    DiffMasks(name + " multicast", a.multicast, b.multicast, &lines);
    DiffMasks(name + " clock", {a.clock}, {b.clock}, &lines);
    for (std::size_t e = 0; e < std::min(a.forwarding.size(), b.forwarding.size()); ++e) {
      if (a.forwarding[e] == b.forwarding[e]) continue;
      lines.push_back(fmt::format("{} forwarding {}: {} -> {}", name, e,
                                  ForwardingNumber(a.forwarding[e]),
                                  ForwardingNumber(b.forwarding[e])));
    }
    if (a.closed_middles != b.closed_middles) {
      lines.push_back(fmt::format("{} closed middles: {} -> {}", name, a.closed_middles.size(),
                                  b.closed_middles.size()));
    }
    if (a.detours != b.detours) {
      lines.push_back(fmt::format("{} destinations on detours: {} -> {}", name, a.detours.size(),
                                  b.detours.size()));
    }
  }
  for (const std::string& name : after.names) {
    if (find(before, name) == before.names.size()) lines.push_back(name + ": only in the second");
  }
  return lines;
}

}  // namespace percs
