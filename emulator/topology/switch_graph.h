// Networks of switches other than that of PERCS: a torus, a HyperX, a fat tree, or one whose links
// are listed. A switch is a hub whose links are its L ports, because those have three virtual
// channels.
//
// No cycle of channels can form, whatever tables are mixed while an epoch changes, because packets
// pass channels in ascending order (docs/semantics.md rule 10):
//
// - Planned routes are of VC 0 and 1. The links of a network are in sections: the dimensions of a
//   torus or a HyperX, or up and down of a fat tree. Within a section a link has a place. Channels
//   are ordered by section, then VC, then place: what goes round a ring of a torus goes on with VC
//   1 (a dateline: Dally and Seitz, IEEE Transactions on Computers 1987).
// - Detours are of VC 2, which comes after both. They go up, toward the root of a spanning tree,
//   and then down (up*/down*: Schroeder et al., IEEE JSAC 1991).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "emulator/base/ids.h"

namespace percs {

// "LR12".
std::string PortName(PortId port);

// A link between two switches.
struct SwitchLink {
  NodeId a = 0, b = 0;
  LinkClass link_class = LinkClass::kLr;      // kLl or kLr
  PortId port_a = kNoPort, port_b = kNoPort;  // kNoPort: the next one of its class that is free
  bool operator==(const SwitchLink&) const = default;
};

struct GraphSpec {
  enum class Kind : std::uint8_t { kTorus, kHyperx, kFatTree, kListed };
  Kind kind = Kind::kTorus;
  std::vector<int> dims = {};            // torus, HyperX: switches in each dimension
  int levels = 2, radix = 8, taper = 1;  // fat tree
  std::vector<std::string> names = {};   // listed: of the switches
  std::vector<SwitchLink> links = {};    // listed
  bool operator==(const GraphSpec&) const = default;
};

class SwitchGraph {
 public:
  static constexpr int kSwitchesMax = 4096, kPortsMax = kDFirst, kDimsMax = 6, kLevelsMax = 6;
  static constexpr VcId kDetourVc = 2;
  // From the root to any switch at most, so that a packet can count the links of a detour.
  static constexpr int kDistanceMax = 120, kHopsMax = 250;

  struct Far {
    NodeId node = kNoNode;
    PortId port = kNoPort;
  };

  // INVALID_ARGUMENT names the size that does not fit, or a switch that no links join to the first.
  static absl::StatusOr<SwitchGraph> Create(const GraphSpec& spec);

  NodeId switches() const { return static_cast<NodeId>(links_.size()); }
  // The first ones have endpoints: all, or the leaves of a fat tree.
  NodeId leaves() const { return leaves_; }
  // `s12`, `s1-0-3` in a torus or a HyperX, `l2-s5` in a fat tree, or as listed.
  const std::string& name(NodeId node) const { return names_[node]; }
  // What a port leads to; kNoNode: nothing.
  Far Peer(NodeId node, PortId port) const {
    return port < kPortsMax ? links_[node][port].far : Far{};
  }
  // Ports that planned routes to a switch may take; 0: there are only detours.
  PortMask Planned(NodeId here, NodeId to) const;
  // A link of a detour goes up, or down.
  bool Up(NodeId from, NodeId to) const { return rank_[to] < rank_[from]; }
  // By distance from the root, then number.
  std::uint32_t rank(NodeId node) const { return rank_[node]; }

  // VC that a packet takes on the link of `out`: it came in by `in` on `vc`, or is new (`in` is no
  // link port). kNoVc: none is left.
  static constexpr VcId kNoVc = 0xff;
  VcId NextVc(NodeId node, PortId in, VcId vc, PortId out, bool detour) const;

 private:
  struct Link {
    Far far;
    std::uint8_t section = 0;
    std::uint16_t place = 0;
  };
  using Links = std::array<Link, kPortsMax>;

  explicit SwitchGraph(const GraphSpec& spec) : spec_(spec) {}
  absl::Status MakeGrid();
  absl::Status MakeFatTree();
  absl::Status MakeListed();
  void Join(NodeId a, PortId port_a, NodeId b, PortId port_b, Link there, Link back);
  absl::Status RankFrom(NodeId root);
  int Coordinate(NodeId node, std::size_t dim) const {
    return static_cast<int>(node) / strides_[dim] % spec_.dims[dim];
  }
  PortMask PlannedInGrid(NodeId here, NodeId to) const;
  PortMask PlannedInTree(NodeId here, NodeId to) const;
  // Fat tree: digit `position` (2..levels) of a switch, and how many values it has at `level`.
  int LevelOf(NodeId node) const;
  int Digit(NodeId node, int level, int position) const;
  int Values(int level, int position) const;
  NodeId SwitchAt(int level, const std::vector<int>& digits) const;

  GraphSpec spec_;
  NodeId leaves_ = 0;
  std::vector<Links> links_;         // by switch
  std::vector<std::string> names_;   // by switch
  std::vector<std::uint32_t> rank_;  // by switch
  std::vector<int> strides_;         // by dimension
  std::vector<PortId> first_port_;   // by dimension
  std::vector<NodeId> level_first_;  // fat tree: first switch of each level, from 1; then all
};

}  // namespace percs
