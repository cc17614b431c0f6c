// The two-level direct network (paper 000 section V): supernodes x drawers x hubs, and Cell blades at
// its edge. Every neighbour of a hub among hubs is computed, never stored, so a topology of 513
// supernodes costs nothing to hold. Nodes are the hubs, then the blades in the order they were given.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "emulator/base/ids.h"
#include "emulator/clock/clock_settings.h"

namespace percs {

// A Cell blade as the network sees it: a node with one port, N0, that switches nothing. The port is
// plugged into the lowest free D port of a hub, or into the port of another blade.
struct BladeSite {
  std::string name;    // letters, digits and dashes
  std::string attach;  // hub, or blade given before; empty: nothing is plugged in
  bool operator==(const BladeSite&) const = default;
};

// A multicast group with its one sender: hubs that every packet of `source` to the group reaches.
struct MulticastSite {
  std::string name;    // letters, digits and dashes
  std::string source;  // hub
  std::vector<std::string> members;  // hubs; empty: all
  bool operator==(const MulticastSite&) const = default;
};
struct MulticastGroup {
  NodeId source = kNoNode;
  std::vector<NodeId> members;  // ascending
};

struct TopologySpec {
  int supernodes = 1;          // 1..513
  int drawers = 4;             // per supernode, 1..4
  int hubs = 8;                // per drawer, 1..8
  int d_links_per_pair = 1;    // parallel D links between every two supernodes; >= 1 if supernodes > 1
  std::vector<BladeSite> blades = {};
  std::vector<MulticastSite> multicast = {};
  std::optional<ClockSettings> clock = {};  // of the global clock, if it is distributed
};

struct LinkEnd {
  NodeId node = kNoNode;
  PortId port = kNoPort;
  bool operator==(const LinkEnd&) const = default;
};

// "LR12".
std::string PortName(PortId port);

class Topology {
 public:
  // INVALID_ARGUMENT with the arithmetic when the 16 D ports per hub cannot carry it, or a size is
  // out of range.
  static absl::StatusOr<Topology> Create(const TopologySpec& spec);
  // Adds a blade after those there are. INVALID_ARGUMENT or NOT_FOUND says why it cannot be.
  absl::Status AddBlade(const BladeSite& site);
  // Adds a multicast group. REQUIRES: all blades are there. INVALID_ARGUMENT says which name is wrong.
  absl::Status AddGroup(const MulticastSite& site);

  const TopologySpec& spec() const { return spec_; }
  int supernodes() const { return spec_.supernodes; }
  int hubs_per_supernode() const { return hubs_per_supernode_; }
  NodeId hubs() const { return hubs_; }
  NodeId blades() const { return static_cast<NodeId>(blade_peers_.size()); }
  NodeId nodes() const { return hubs_ + blades(); }
  // Multicast groups are destinations of their own, numbered after the nodes.
  const std::vector<MulticastGroup>& groups() const { return groups_; }
  NodeId destinations() const { return nodes() + static_cast<NodeId>(groups_.size()); }
  bool is_group(NodeId destination) const {
    return destination >= nodes() && destination < destinations();
  }
  // REQUIRES: is_group.
  std::size_t group_of(NodeId destination) const { return destination - nodes(); }
  bool is_blade(NodeId node) const { return node >= hubs_ && node < nodes(); }
  // Of hubs only.
  int supernode_of(NodeId node) const { return static_cast<int>(node) / hubs_per_supernode_; }
  int hub_in_supernode(NodeId node) const { return static_cast<int>(node) % hubs_per_supernode_; }
  NodeId node(int supernode, int hub) const {
    return static_cast<NodeId>(supernode * hubs_per_supernode_ + hub);
  }

  // Where packets for a node leave the network of hubs: the hub itself, or the one that a blade is
  // plugged into; kNoNode for a blade that is plugged into none.
  NodeId ExitHub(NodeId node) const {
    if (node < hubs_) return node;
    const NodeId peer = blade_peers_[node - hubs_].node;
    return peer < hubs_ ? peer : kNoNode;
  }
  // The other end of a blade's link.
  LinkEnd BladePeer(NodeId blade) const { return blade_peers_[blade - hubs_]; }

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

  // `sn0-d1-h3`, `sn0-d1-h3:LR12`, `blade0`, `blade0:N0`.
  std::string NodeName(NodeId node) const;
  std::string LinkName(LinkEnd end) const;
  // NOT_FOUND names the nearest existing names. A link also answers to its two ends,
  // `sn0-d1-h3/sn0-d2-h4` (ambiguous parallel D links are INVALID_ARGUMENT that lists them).
  absl::StatusOr<NodeId> ParseNode(const std::string& name) const;
  // Also a multicast group.
  absl::StatusOr<NodeId> ParseDestination(const std::string& name) const;
  absl::StatusOr<LinkEnd> ParseLink(const std::string& name) const;

 private:
  explicit Topology(const TopologySpec& spec)
      : spec_(spec),
        hubs_per_supernode_(spec.drawers * spec.hubs),
        hubs_(static_cast<NodeId>(spec.supernodes * hubs_per_supernode_)) {
    spec_.blades.clear();
    spec_.multicast.clear();
  }
  static std::uint64_t Key(LinkEnd end) { return std::uint64_t{end.node} << 8 | end.port; }
  int DLinksOf(NodeId hub) const;
  absl::StatusOr<LinkEnd> FindSocket(const BladeSite& site) const;
  std::vector<std::string> NodeNames() const;

  TopologySpec spec_;
  int hubs_per_supernode_;
  NodeId hubs_;
  std::vector<MulticastGroup> groups_;
  std::vector<LinkEnd> blade_peers_;                               // by blade
  absl::flat_hash_map<std::uint64_t, NodeId> blades_at_hub_ports_;  // by Key of the hub's end
};

}  // namespace percs
