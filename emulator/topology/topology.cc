#include "emulator/topology/topology.h"

#include <algorithm>
#include <bit>
#include <cctype>

#include "absl/status/status.h"
#include "emulator/base/check.h"
#include "emulator/topology/find_names.h"
#include "fmt/format.h"

namespace percs {
namespace {

constexpr int kSupernodesMax = 513, kDrawersMax = 4, kHubsMax = 8;

absl::Status Invalid(const std::string& message) { return absl::InvalidArgumentError(message); }

absl::Status CheckRange(const char* what, int value, int low, int high) {
  if (value >= low && value <= high) return absl::OkStatus();
  return Invalid(fmt::format("topology.{}: {} is outside {}..{}", what, value, low, high));
}

bool IsName(const std::string& name) {
  const auto bad = [](char c) { return !std::isalnum(static_cast<unsigned char>(c)) && c != '-'; };
  return !name.empty() && std::none_of(name.begin(), name.end(), bad);
}

absl::Status CheckDLinks(const TopologySpec& spec) {
  if (spec.supernodes == 1) {
    if (spec.d_links_per_pair >= 0) return absl::OkStatus();
    return Invalid(fmt::format("topology.d_links_per_pair: {} is negative", spec.d_links_per_pair));
  }
  if (spec.d_links_per_pair < 1) {
    return Invalid(
        fmt::format("topology.d_links_per_pair: {} leaves {} supernodes without a link between "
                    "them; at least 1 is needed",
                    spec.d_links_per_pair, spec.supernodes));
  }
  const int hubs = spec.drawers * spec.hubs;
  const int others = spec.supernodes - 1, room = kDPorts * hubs;
  const std::int64_t needed = static_cast<std::int64_t>(spec.d_links_per_pair) * others;
  if (needed > room) {
    const std::string most = room / others > 0
                                 ? fmt::format("at most {} link{} per pair fit", room / others,
                                               room / others == 1 ? "" : "s")
                                 : fmt::format("at most {} supernodes fit", room + 1);
    return Invalid(fmt::format(
        "topology: {} D link{} per pair x {} other supernodes = {} D ports per supernode, but {} "
        "drawer{} x {} "
        "hub{} x {} D ports = {}; {}",
        spec.d_links_per_pair, spec.d_links_per_pair == 1 ? "" : "s", others, needed, spec.drawers,
        spec.drawers == 1 ? "" : "s", spec.hubs, spec.hubs == 1 ? "" : "s", kDPorts, room, most));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status TopologySpec::UseGraph(const GraphSpec& of) {
  const auto made = SwitchGraph::Create(of);
  if (!made.ok()) return made.status();
  graph = of;
  supernodes = drawers = 1;
  hubs = static_cast<int>(made->switches());
  leaves = static_cast<int>(made->leaves());
  return absl::OkStatus();
}

namespace {

absl::Status CheckGraph(const TopologySpec& spec, const SwitchGraph& graph) {
  PERCS_CHECK(spec.supernodes == 1 && spec.drawers == 1 &&
              spec.hubs == static_cast<int>(graph.switches()));
  const char* const what = !spec.blades.empty() ? "Cell blades"
                           : spec.infiniband    ? "an InfiniBand tree"
                                                : nullptr;
  if (what == nullptr) return absl::OkStatus();
  return Invalid(fmt::format("topology: {} need kind percs or dragonfly", what));
}

absl::Status CheckSizes(const TopologySpec& spec) {
  if (auto s = CheckRange("supernodes", spec.supernodes, 1, kSupernodesMax); !s.ok()) return s;
  if (auto s = CheckRange("drawers", spec.drawers, 1, kDrawersMax); !s.ok()) return s;
  if (auto s = CheckRange("hubs", spec.hubs, 1, kHubsMax); !s.ok()) return s;
  const int hubs = spec.drawers * spec.hubs;
  if (spec.supernodes * hubs < 2 && spec.blades.empty() && !spec.infiniband) {
    return Invalid(
        "topology: 1 supernode x 1 drawer x 1 hub is a single hub; a network needs at least 2");
  }
  return CheckDLinks(spec);
}

}  // namespace

absl::StatusOr<Topology> Topology::Create(const TopologySpec& spec) {
  std::optional<SwitchGraph> graph;
  if (spec.graph) {
    auto made = SwitchGraph::Create(*spec.graph);
    if (!made.ok()) return made.status();
    graph = *std::move(made);
  }
  if (auto s = graph ? CheckGraph(spec, *graph) : CheckSizes(spec); !s.ok()) return s;
  Topology topology(spec);
  if (graph) {
    absl::flat_hash_map<std::string, NodeId> names;
    for (NodeId node = 0; node < graph->switches(); ++node) names[graph->name(node)] = node;
    topology.graph_ = std::make_shared<const SwitchGraph>(*std::move(graph));
    topology.graph_names_ =
        std::make_shared<const absl::flat_hash_map<std::string, NodeId>>(std::move(names));
  }
  if (absl::Status status = topology.AddParts(spec); !status.ok()) return status;
  return topology;
}

absl::Status Topology::AddParts(const TopologySpec& spec) {
  if (spec.infiniband) {
    spec_.infiniband = spec.infiniband;
    if (absl::Status status = AddTree(); !status.ok()) return status;
  }
  for (const BladeSite& site : spec.blades) {
    if (absl::Status status = AddBlade(site); !status.ok()) return status;
  }
  for (const MulticastSite& site : spec.multicast) {
    if (absl::Status status = AddGroup(site); !status.ok()) return status;
  }
  for (const PcieDevice& device : spec.pcie) {
    if (absl::Status status = AddDevice(device); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status Topology::AddGroup(const MulticastSite& site) {
  if (!IsName(site.name)) {
    return Invalid(fmt::format(
        "\"{}\" is not a name for a multicast group; write letters, digits and dashes", site.name));
  }
  if (FindDestination(*this, site.name)) {
    return Invalid(
        fmt::format("{} exists already; write another name for the multicast group", site.name));
  }
  const auto hub = [&](const std::string& name, const char* what) -> absl::StatusOr<NodeId> {
    const auto node = ParseNode(name);
    if (node.ok() && *node < leaves()) return *node;
    return Invalid(fmt::format(
        "multicast group {}, {}: {}", site.name, what,
        !node.ok()       ? std::string(node.status().message())
        : *node < hubs() ? name + " has no endpoints; only leaves send and receive multicasts"
                         : name + " is a blade; only hubs send and receive multicasts"));
  };
  const auto source = hub(site.source, "source");
  if (!source.ok()) return source.status();
  MulticastGroup group{*source, {}};
  for (const std::string& name : site.members) {
    const auto member = hub(name, "member");
    if (!member.ok()) return member.status();
    group.members.push_back(*member);
  }
  for (NodeId node = 0; site.members.empty() && node < leaves(); ++node) {
    if (node != group.source) group.members.push_back(node);
  }
  std::sort(group.members.begin(), group.members.end());
  const auto twice = std::adjacent_find(group.members.begin(), group.members.end());
  if (twice != group.members.end()) {
    return Invalid(
        fmt::format("multicast group {}: {} is a member twice", site.name, NodeName(*twice)));
  }
  spec_.multicast.push_back(site);
  groups_.push_back(std::move(group));
  return absl::OkStatus();
}

absl::Status Topology::AddDevice(const PcieDevice& device) {
  if (device.hub >= hubs()) {
    return Invalid(
        fmt::format("a PCI Express device at {}, which is not a hub", NodeName(device.hub)));
  }
  const std::string what =
      fmt::format("PCI Express port {} of {}", device.port, NodeName(device.hub));
  if (device.port < 0 || device.port >= kPciePorts) {
    return Invalid(fmt::format("{} does not exist; a hub has 0..{}", what, kPciePorts - 1));
  }
  if (!IsPcieWidth(device.lanes)) {
    return Invalid(
        fmt::format("{}: a device of {} lanes; write 1, 4, 8 or 16", what, device.lanes));
  }
  if (device.bytes < 1 || device.bytes > PcieDevice::kBytesMax) {
    return Invalid(fmt::format("{}: a device of {} bytes; write 1 to {}", what, device.bytes,
                               PcieDevice::kBytesMax));
  }
  if (device.latency < 0 || device.latency > PcieDevice::kLatencyMax) {
    return Invalid(fmt::format("{}: a latency of {} ps; write 0 to {}", what, device.latency,
                               PcieDevice::kLatencyMax));
  }
  if (DeviceAt(device.hub, device.port)) {
    return Invalid(fmt::format("{} has a device already; a port takes only one", what));
  }
  spec_.pcie.push_back(device);
  return absl::OkStatus();
}

const PcieDevice* Topology::DeviceAt(NodeId hub, int port) const {
  for (const PcieDevice& device : spec_.pcie) {
    if (device.hub == hub && device.port == port) return &device;
  }
  return nullptr;
}

// D slots of a supernode go round its hubs (docs/semantics.md rule 14).
int Topology::DLinksOf(NodeId hub) const {
  const int slots = spec_.supernodes > 1 ? spec_.d_links_per_pair * (spec_.supernodes - 1) : 0;
  return (slots + hubs_per_supernode_ - 1 - hub_in_supernode(hub)) / hubs_per_supernode_;
}

absl::StatusOr<LinkEnd> Topology::FindSocket(const BladeSite& site) const {
  if (site.attach.empty()) return LinkEnd{};
  const auto node = ParseNode(site.attach);
  if (!node.ok()) return node.status();
  if (is_crossbar(*node)) {
    return Invalid(
        fmt::format("{} has only cables to other crossbars; attach {} to a CU or to one of its "
                    "leaves, cu0 or cu0-leaf0",
                    site.attach, site.name));
  }
  if (is_blade(*node)) {
    if (BladePeer(*node).node == kNoNode) return LinkEnd{*node, kBladePort};
    return Invalid(fmt::format(
        "{} has one network port, which is plugged into {}; {} cannot be plugged in as well",
        site.attach, NodeName(BladePeer(*node).node), site.name));
  }
  return FreeDPort(*node, site.name);
}

absl::StatusOr<LinkEnd> Topology::FreeDPort(NodeId hub, const std::string& what) const {
  const int links = DLinksOf(hub);
  int taken = 0;
  for (int p = kDFirst + links; p < kHfiFirst; ++p, ++taken) {
    const LinkEnd socket{hub, static_cast<PortId>(p)};
    if (!blades_at_hub_ports_.contains(Key(socket))) return socket;
  }
  return Invalid(
      fmt::format("{} has {} D ports: {} carry D links to other supernodes + {} blades = {}; none "
                  "is free for {}",
                  NodeName(hub), kDPorts, links, taken, links + taken, what));
}

absl::Status Topology::AddBlade(const BladeSite& site) {
  if (!IsName(site.name)) {
    return Invalid(fmt::format("\"{}\" is not a name for a blade; write letters, digits and dashes",
                               site.name));
  }
  if (FindNode(*this, site.name)) {
    return Invalid(fmt::format("{} exists already; write another name", site.name));
  }
  if (tree_ && site.attach.rfind("cu", 0) == 0) {
    const auto endpoint = AttachToTree(site.attach);
    if (!endpoint.ok()) return endpoint.status();
    endpoint_blades_.push_back(hubs_ + blades());
    spec_.blades.push_back(site);
    blade_peers_.push_back({});
    blade_endpoints_.push_back(*endpoint);
    return absl::OkStatus();
  }
  const auto socket = FindSocket(site);
  if (!socket.ok()) return socket.status();
  const NodeId blade = hubs_ + blades();
  spec_.blades.push_back(site);
  blade_peers_.push_back(*socket);
  blade_endpoints_.push_back(-1);
  if (socket->node == kNoNode) return absl::OkStatus();
  if (is_blade(socket->node)) {
    blade_peers_[socket->node - hubs_] = {blade, kBladePort};
  } else {
    blades_at_hub_ports_[Key(*socket)] = blade;
  }
  return absl::OkStatus();
}

LinkEnd Topology::Peer(NodeId node, PortId port) const {
  PERCS_CHECK(node < nodes());
  if (is_blade(node)) return port == kBladePort ? BladePeer(node) : LinkEnd{};
  if (is_crossbar(node)) return CrossbarPeer(node, port);
  if (graph_) {
    const SwitchGraph::Far far = graph_->Peer(node, port);
    return {far.node, far.port};
  }
  const int supernode = supernode_of(node), hub = hub_in_supernode(node);
  const int drawer = hub / spec_.hubs, in_drawer = hub % spec_.hubs;
  if (port < kLrFirst) {  // LL k = the drawer's other hubs in order
    const int k = port - kLlFirst, other = k < in_drawer ? k : k + 1;
    if (other >= spec_.hubs) return {};
    const NodeId peer = this->node(supernode, drawer * spec_.hubs + other);
    return {peer, LPort(peer, node)};
  }
  if (port < kDFirst) {  // LR k = 8 x (rank among the other drawers) + hub
    const int rank = (port - kLrFirst) / kHubsMax, other = (port - kLrFirst) % kHubsMax;
    const int other_drawer = rank < drawer ? rank : rank + 1;
    if (other_drawer >= spec_.drawers || other >= spec_.hubs) return {};
    const NodeId peer = this->node(supernode, other_drawer * spec_.hubs + other);
    return {peer, LPort(peer, node)};
  }
  if (port >= kHfiFirst) return {};
  if (!blades_at_hub_ports_.empty()) {
    const auto blade = blades_at_hub_ports_.find(Key({node, port}));
    if (blade != blades_at_hub_ports_.end()) {
      return {blade->second == kNoNode ? crossbar_node(tree_->LeafOf(0)) : blade->second,
              kBladePort};
    }
  }
  if (spec_.supernodes == 1) return {};
  const int others = spec_.supernodes - 1;
  const int slot = (port - kDFirst) * hubs_per_supernode_ + hub;
  if (slot >= spec_.d_links_per_pair * others) return {};
  const int copy = slot / others, distance = slot % others + 1;
  const int peer_slot = copy * others + (spec_.supernodes - distance) - 1;
  return {this->node((supernode + distance) % spec_.supernodes, peer_slot % hubs_per_supernode_),
          static_cast<PortId>(kDFirst + peer_slot / hubs_per_supernode_)};
}

PortId Topology::LPort(NodeId a, NodeId b) const {
  PERCS_CHECK(!graph_ && a != b && supernode_of(a) == supernode_of(b));
  const int hub_a = hub_in_supernode(a), hub_b = hub_in_supernode(b);
  const int drawer_a = hub_a / spec_.hubs, drawer_b = hub_b / spec_.hubs;
  const int in_a = hub_a % spec_.hubs, in_b = hub_b % spec_.hubs;
  if (drawer_a == drawer_b) return static_cast<PortId>(kLlFirst + (in_b < in_a ? in_b : in_b - 1));
  const int rank = drawer_b < drawer_a ? drawer_b : drawer_b - 1;
  return static_cast<PortId>(kLrFirst + kHubsMax * rank + in_b);
}

PortMask Topology::DPorts(NodeId node, int supernode) const {
  const int own = supernode_of(node), hub = hub_in_supernode(node);
  PERCS_CHECK(supernode != own);
  const int others = spec_.supernodes - 1;
  const int distance = (supernode - own + spec_.supernodes) % spec_.supernodes;
  PortMask mask = 0;
  for (int copy = 0; copy < spec_.d_links_per_pair; ++copy) {
    const int slot = copy * others + distance - 1;
    if (slot % hubs_per_supernode_ == hub) {
      mask |= PortBit(static_cast<PortId>(kDFirst + slot / hubs_per_supernode_));
    }
  }
  return mask;
}

int Topology::SupernodeBehind(NodeId node, PortId d_port) const {
  PERCS_CHECK(IsD(d_port));
  const LinkEnd peer = Peer(node, d_port);
  return peer.node == kNoNode || peer.node >= hubs_ ? -1 : supernode_of(peer.node);
}

std::uint32_t Topology::ExitHubs(int from, int to) const {
  PERCS_CHECK(from != to);
  const int others = spec_.supernodes - 1;
  const int distance = (to - from + spec_.supernodes) % spec_.supernodes;
  std::uint32_t hubs = 0;
  for (int copy = 0; copy < spec_.d_links_per_pair; ++copy) {
    hubs |= 1u << ((copy * others + distance - 1) % hubs_per_supernode_);
  }
  return hubs;
}

std::vector<LinkEnd> Topology::Links() const {
  std::vector<LinkEnd> links;
  for (NodeId node = 0; node < nodes(); ++node) {
    for (int p = 0; p < kLinkPorts; ++p) {
      const PortId port = static_cast<PortId>(p);
      const LinkEnd peer = Peer(node, port);
      // No link joins a hub to itself, so comparing nodes decides which end is the lower.
      if (peer.node != kNoNode && node < peer.node) links.push_back({node, port});
    }
  }
  return links;
}

}  // namespace percs
