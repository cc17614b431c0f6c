// The two-level direct network (paper 000 section V): supernodes x drawers x hubs, and Cell blades
// at its edge. Every neighbour of a hub among hubs is computed, never stored, so a topology of 513
// supernodes costs nothing to hold. Beside it, or joined to it by a gateway link, the InfiniBand
// tree of Roadrunner (paper 004, section Roadrunner; emulator/topology/ib_tree.h). Nodes are the
// hubs, then the blades in the order they were given, then the crossbars of the tree. Other
// networks are a SwitchGraph, whose switches are the hubs of one supernode.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "emulator/base/ids.h"
#include "emulator/topology/clock_settings.h"
#include "emulator/topology/ib_tree.h"
#include "emulator/topology/pcie_device.h"
#include "emulator/topology/switch_graph.h"

namespace percs {

// A Cell blade as the network sees it: a node with one port, N0, that switches nothing. The port is
// plugged into the lowest free D port of a hub, into the port of another blade, or into a leaf
// crossbar.
struct BladeSite {
  std::string name;  // letters, digits and dashes
  std::string
      attach;  // hub, blade given before, `cu0` or `cu0-leaf3`; empty: nothing is plugged in
  bool operator==(const BladeSite&) const = default;
};

// A multicast group with its one sender: hubs that every packet of `source` to the group reaches.
struct MulticastSite {
  std::string name;                  // letters, digits and dashes
  std::string source;                // hub
  std::vector<std::string> members;  // hubs; empty: all
  bool operator==(const MulticastSite&) const = default;
};
struct MulticastGroup {
  NodeId source = kNoNode;
  std::vector<NodeId> members;  // ascending
};

// The InfiniBand tree: its CUs, and the hub whose lowest free D port a gateway link joins to it, if
// any. The other end is the last port of the last leaf of CU 0.
struct InfinibandSpec {
  int cus = 1;          // 1..24
  std::string gateway;  // hub; empty: the tree is a network of its own
  bool operator==(const InfinibandSpec&) const = default;
};

struct TopologySpec {
  int supernodes = 1;  // 1..513
  int drawers = 4;     // per supernode, 1..4
  int hubs = 8;        // per drawer, 1..8
  int d_links_per_pair =
      1;  // parallel D links between every two supernodes; >= 1 if supernodes > 1
  std::vector<BladeSite> blades = {};
  std::optional<InfinibandSpec> infiniband = {};
  std::vector<MulticastSite> multicast = {};
  std::optional<ClockSettings> clock = {};  // of the global clock, if it is distributed
  std::vector<PcieDevice> pcie = {};        // what is plugged into PCI Express ports of hubs
  // Endpoints of each hub, at one HFI port each, between which synthetic traffic goes; 0: traffic
  // is between hubs and uses all of their ports.
  int endpoints = 0;
  // In place of the two-level network. Set it by UseGraph.
  std::optional<GraphSpec> graph = {};
  int leaves = 0;  // hubs that synthetic traffic is between, the first ones; 0: all
  // Takes the sizes from it: one supernode of one drawer. INVALID_ARGUMENT as SwitchGraph::Create.
  absl::Status UseGraph(const GraphSpec& spec);
  int places() const { return endpoints > 1 ? endpoints : 1; }  // that a hub has in a pattern
};

struct LinkEnd {
  NodeId node = kNoNode;
  PortId port = kNoPort;
  bool operator==(const LinkEnd&) const = default;
};

// WIDE: constant after Create; each method answers one question about the wiring.
class Topology {
 public:
  // INVALID_ARGUMENT with the arithmetic when the 16 D ports per hub cannot carry it, or a size is
  // out of range.
  static absl::StatusOr<Topology> Create(const TopologySpec& spec);
  // Adds a blade after those there are. INVALID_ARGUMENT or NOT_FOUND says why it cannot be.
  absl::Status AddBlade(const BladeSite& site);
  // Adds a multicast group. REQUIRES: all blades are there. INVALID_ARGUMENT says which name is
  // wrong.
  absl::Status AddGroup(const MulticastSite& site);
  // Plugs a device into a PCI Express port of a hub. INVALID_ARGUMENT says what does not fit.
  absl::Status AddDevice(const PcieDevice& device);

  const TopologySpec& spec() const { return spec_; }
  const SwitchGraph* graph() const { return graph_.get(); }  // null: the network is PERCS's
  int supernodes() const { return spec_.supernodes; }
  int hubs_per_supernode() const { return hubs_per_supernode_; }
  NodeId hubs() const { return hubs_; }
  // Hubs that workloads are between, the first ones: all but the inner switches of a fat tree.
  NodeId leaves() const { return graph_ ? graph_->leaves() : hubs_; }
  NodeId blades() const { return static_cast<NodeId>(blade_peers_.size()); }
  NodeId crossbars() const { return tree_ ? static_cast<NodeId>(tree_->crossbars()) : 0; }
  NodeId nodes() const { return hubs_ + blades() + crossbars(); }
  int route_hops_max() const { return graph_ ? SwitchGraph::kHopsMax : kRouteHopsMax; }
  // Multicast groups are destinations of their own, numbered after the nodes.
  const std::vector<MulticastGroup>& groups() const { return groups_; }
  NodeId destinations() const { return nodes() + static_cast<NodeId>(groups_.size()); }
  bool is_group(NodeId destination) const {
    return destination >= nodes() && destination < destinations();
  }
  // REQUIRES: is_group.
  std::size_t group_of(NodeId destination) const { return destination - nodes(); }
  // Null: nothing is plugged in there.
  const PcieDevice* DeviceAt(NodeId hub, int port) const;
  bool is_blade(NodeId node) const { return node >= hubs_ && node < hubs_ + blades(); }
  bool is_crossbar(NodeId node) const { return node >= hubs_ + blades() && node < nodes(); }
  // Of hubs only.
  int supernode_of(NodeId node) const { return static_cast<int>(node) / hubs_per_supernode_; }
  int hub_in_supernode(NodeId node) const { return static_cast<int>(node) % hubs_per_supernode_; }
  NodeId node(int supernode, int hub) const {
    return static_cast<NodeId>(supernode * hubs_per_supernode_ + hub);
  }

  // Where packets for a node leave the network of hubs: the hub itself, the one that a blade is
  // plugged into, or that of the gateway to the tree; kNoNode for a node that no hub reaches.
  NodeId ExitHub(NodeId node) const {
    if (node < hubs_) return node;
    const NodeId peer = Socket(node).node;
    return peer < hubs_ ? peer : kNoNode;
  }
  // Of a node that is no hub: the port that packets for it from elsewhere come out of: of a hub, or
  // of the blade at the other end of a cable between two. Nothing is sent to a crossbar.
  LinkEnd Socket(NodeId node) const {
    return is_crossbar(node) ? LinkEnd{} : EndpointOf(node) < 0 ? BladePeer(node) : gateway_;
  }
  // The other end of a blade's link.
  LinkEnd BladePeer(NodeId blade) const;

  // --- InfiniBand. The rest of this part REQUIRES a tree.
  bool has_tree() const { return tree_.has_value(); }
  bool in_tree(NodeId node) const {
    return is_crossbar(node) || (is_blade(node) && EndpointOf(node) >= 0);
  }
  const roadrunner::IbTree& tree() const { return *tree_; }
  NodeId crossbar_node(int crossbar) const {
    return hubs_ + blades() + static_cast<NodeId>(crossbar);
  }
  int crossbar_of(NodeId node) const { return static_cast<int>(node - hubs_ - blades()); }
  // The hub's end of the gateway link; kNoNode: there is none.
  LinkEnd gateway() const { return gateway_; }
  // The endpoint of the tree that a blade is, -1 if it is none; and the one that packets for a node
  // go to, the gateway's for what is no part of it, -1 if there is none.
  int EndpointOf(NodeId blade) const { return blade_endpoints_[blade - hubs_]; }
  int DestinationEndpoint(NodeId node) const {
    if (is_crossbar(node)) return -1;
    return in_tree(node) ? EndpointOf(node) : gateway_.node != kNoNode ? 0 : -1;
  }
  // The blade that an endpoint is; kNoNode: it is the gateway.
  NodeId BladeAtEndpoint(int endpoint) const {
    return endpoint_blades_[static_cast<std::size_t>(endpoint)];
  }
  // Of any node's port, unlike percs::ClassOf.
  LinkClass ClassOfLink(LinkEnd end) const;

  // The other end of a port's link; node == kNoNode where nothing is plugged in.
  LinkEnd Peer(NodeId node, PortId port) const;
  bool connected(NodeId node, PortId port) const { return Peer(node, port).node != kNoNode; }
  // The L port from `a` to `b`. REQUIRES: same supernode, a != b.
  PortId LPort(NodeId a, NodeId b) const;
  // D ports of `node` that lead to `supernode` (not its own).
  PortMask DPorts(NodeId node, int supernode) const;
  // Supernode that D port leads to, or -1 where it leads to none.
  int SupernodeBehind(NodeId node, PortId d_port) const;
  // Bit h = hub h of supernode `from` owns a D link to supernode `to`.
  std::uint32_t ExitHubs(int from, int to) const;
  // All links once, from the end with the lower (node, port).
  std::vector<LinkEnd> Links() const;

  // `sn0-d1-h3`, `sn0-d1-h3:LR12`, `blade0`, `blade0:N0`, `cu0-leaf3`, `cu0-leaf3:p9`,
  // `cu0-leaf23:G0` (gateway).
  std::string NodeName(NodeId node) const;
  std::string LinkName(LinkEnd end) const;
  // NOT_FOUND names the nearest existing names. A link also answers to its two ends,
  // `sn0-d1-h3/sn0-d2-h4` (ambiguous parallel D links are INVALID_ARGUMENT that lists them).
  absl::StatusOr<NodeId> ParseNode(const std::string& name) const;
  // The switch of that name in a graph.
  std::optional<NodeId> SwitchNamed(const std::string& name) const;
  // Also a multicast group.
  absl::StatusOr<NodeId> ParseDestination(const std::string& name) const;
  absl::StatusOr<LinkEnd> ParseLink(const std::string& name) const;

 private:
  explicit Topology(const TopologySpec& spec)
      : spec_(spec),
        hubs_per_supernode_(spec.drawers * spec.hubs),
        hubs_(static_cast<NodeId>(spec.supernodes * hubs_per_supernode_)) {
    spec_.blades.clear();
    spec_.infiniband.reset();
    spec_.multicast.clear();
    spec_.pcie.clear();
  }
  static std::uint64_t Key(LinkEnd end) { return std::uint64_t{end.node} << 8 | end.port; }
  int DLinksOf(NodeId hub) const;
  absl::Status AddParts(const TopologySpec& spec);
  absl::Status AddTree();
  absl::StatusOr<int> AttachToTree(const std::string& place);
  LinkEnd CrossbarPeer(NodeId node, PortId port) const;
  absl::StatusOr<LinkEnd> FreeDPort(NodeId hub, const std::string& what) const;
  absl::StatusOr<LinkEnd> FindSocket(const BladeSite& site) const;
  std::vector<std::string> NodeNames() const;

  TopologySpec spec_;
  int hubs_per_supernode_;
  NodeId hubs_;
  std::vector<MulticastGroup> groups_;
  std::vector<LinkEnd> blade_peers_;     // by blade; of those of the tree not used
  std::vector<int> blade_endpoints_;     // by blade; -1: not of the tree
  std::vector<NodeId> endpoint_blades_;  // by endpoint; kNoNode: the gateway
  absl::flat_hash_map<std::uint64_t, NodeId>
      blades_at_hub_ports_;  // by Key of the hub's end; kNoNode: the gateway
  std::optional<roadrunner::IbTree> tree_;
  LinkEnd gateway_;
  std::shared_ptr<const SwitchGraph> graph_;
  std::shared_ptr<const absl::flat_hash_map<std::string, NodeId>> graph_names_;
};

}  // namespace percs
