// The two-level direct network (paper 000 section V): supernodes x drawers x hubs. Every neighbour
// is computed, never stored, so a topology of 513 supernodes costs nothing to hold.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "emulator/base/ids.h"

namespace percs {

struct TopologySpec {
  int supernodes = 1;          // 1..513
  int drawers = 4;             // per supernode, 1..4
  int hubs = 8;                // per drawer, 1..8
  int d_links_per_pair = 1;    // parallel D links between every two supernodes; >= 1 if supernodes > 1
};

struct LinkEnd {
  NodeId node = kNoNode;
  PortId port = kNoPort;
  bool operator==(const LinkEnd&) const = default;
};

class Topology {
 public:
  // INVALID_ARGUMENT with the arithmetic when the 16 D ports per hub cannot carry it, or a size is
  // out of range.
  static absl::StatusOr<Topology> Create(const TopologySpec& spec);

  const TopologySpec& spec() const { return spec_; }
  int supernodes() const { return spec_.supernodes; }
  int hubs_per_supernode() const { return hubs_per_supernode_; }
  NodeId nodes() const { return static_cast<NodeId>(spec_.supernodes * hubs_per_supernode_); }
  int supernode_of(NodeId node) const { return static_cast<int>(node) / hubs_per_supernode_; }
  int hub_in_supernode(NodeId node) const { return static_cast<int>(node) % hubs_per_supernode_; }
  NodeId node(int supernode, int hub) const {
    return static_cast<NodeId>(supernode * hubs_per_supernode_ + hub);
  }

  // The other end of a port's link; node == kNoNode where nothing is plugged in.
  LinkEnd Peer(NodeId node, PortId port) const;
  bool connected(NodeId node, PortId port) const { return Peer(node, port).node != kNoNode; }
  // The L port from `a` to `b`. REQUIRES: same supernode, a != b.
  PortId LPort(NodeId a, NodeId b) const;
  // D ports of `node` that lead to `supernode` (not its own).
  PortMask DPorts(NodeId node, int supernode) const;
  // Supernode that D port leads to, or -1.
  int SupernodeBehind(NodeId node, PortId d_port) const;
  // Bit h = hub h of supernode `from` owns a D link to supernode `to`.
  std::uint32_t ExitHubs(int from, int to) const;
  // All links once, from the end with the lower (node, port).
  std::vector<LinkEnd> Links() const;

  // `sn0-d1-h3`, `sn0-d1-h3:LR12`.
  std::string NodeName(NodeId node) const;
  std::string LinkName(LinkEnd end) const;
  // NOT_FOUND names the nearest existing names. A link also answers to its two ends,
  // `sn0-d1-h3/sn0-d2-h4` (ambiguous parallel D links are INVALID_ARGUMENT that lists them).
  absl::StatusOr<NodeId> ParseNode(const std::string& name) const;
  absl::StatusOr<LinkEnd> ParseLink(const std::string& name) const;

 private:
  explicit Topology(const TopologySpec& spec)
      : spec_(spec), hubs_per_supernode_(spec.drawers * spec.hubs) {}
  TopologySpec spec_;
  int hubs_per_supernode_;
};

}  // namespace percs
