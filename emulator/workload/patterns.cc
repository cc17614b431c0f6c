#include "emulator/workload/patterns.h"

#include <algorithm>
#include <bit>
#include <string>

#include "emulator/base/check.h"
#include "fmt/format.h"

namespace percs {
namespace {

// A permutation of 0..size-1 that any hub computes for one value alone, without a table of all: a
// balanced Feistel network over the next power of four, walked until it lands inside.
class KeyedPermutation {
 public:
  KeyedPermutation(std::uint64_t seed, std::uint32_t size) : size_(size) {
    RandomStream keys(seed, "randperm");
    for (std::uint64_t& key : keys_) key = keys.Next();
    half_bits_ = std::max(1, static_cast<int>(std::bit_width(size - 1) + 1) / 2);
  }
  std::uint32_t Forward(std::uint32_t value) const {
    do value = Encrypt(value);
    while (value >= size_);
    return value;
  }
  std::uint32_t Backward(std::uint32_t value) const {
    do value = Decrypt(value);
    while (value >= size_);
    return value;
  }

 private:
  static constexpr int kRounds = 6;
  std::uint32_t Round(int round, std::uint32_t half) const {
    return static_cast<std::uint32_t>(Mix64(keys_[round] ^ half)) & ((1u << half_bits_) - 1);
  }
  std::uint32_t Encrypt(std::uint32_t value) const {
    std::uint32_t left = value >> half_bits_, right = value & ((1u << half_bits_) - 1);
    for (int r = 0; r < kRounds; ++r) {
      const std::uint32_t next = left ^ Round(r, right);
      left = right;
      right = next;
    }
    return left << half_bits_ | right;
  }
  std::uint32_t Decrypt(std::uint32_t value) const {
    std::uint32_t left = value >> half_bits_, right = value & ((1u << half_bits_) - 1);
    for (int r = kRounds - 1; r >= 0; --r) {
      const std::uint32_t previous = right ^ Round(r, left);
      right = left;
      left = previous;
    }
    return left << half_bits_ | right;
  }

  std::uint32_t size_;
  int half_bits_;
  std::uint64_t keys_[kRounds];
};

// The hubs stand in a random circle and each sends to the one after it: a permutation without a
// fixed point, whatever the seed.
NodeId RandomPermutation(std::uint64_t seed, NodeId nodes, NodeId node) {
  const KeyedPermutation circle(seed, nodes);
  return circle.Forward((circle.Backward(node) + 1) % nodes);
}

std::uint32_t HalfWay(std::uint32_t places) { return std::max(1u, (places + 1) / 2 - 1); }

std::string Sizes(const TopologySpec& t) {
  const std::string endpoints =
      t.endpoints < 2 ? ""
                      : fmt::format(" x {} endpoints = {} endpoints", t.endpoints, PlacesOf(t));
  if (t.graph) return fmt::format("{} switches{}", t.leaves > 0 ? t.leaves : t.hubs, endpoints);
  return fmt::format("{} supernode{} x {} drawer{} x {} hub{}{}", t.supernodes,
                     t.supernodes == 1 ? "" : "s", t.drawers, t.drawers == 1 ? "" : "s", t.hubs,
                     t.hubs == 1 ? "" : "s",
                     endpoints.empty() ? fmt::format(" = {} hubs", PlacesOf(t)) : endpoints);
}

NodeId PlacesOfSupernode(const TopologySpec& t) {
  const int hubs = t.leaves > 0 ? t.leaves : t.drawers * t.hubs;
  return static_cast<NodeId>(hubs * t.places());
}

absl::StatusOr<NodeId> Transpose(const TopologySpec& topology, NodeId nodes, NodeId node) {
  NodeId side = 1;
  while (side * side < nodes) ++side;
  if (side * side != nodes) {
    return absl::InvalidArgumentError(fmt::format(
        "pattern transpose needs a square number of hubs; this topology has {}; expected 16 (1 x "
        "2 x 8) or 64 (2 x 4 x 8), for example",
        Sizes(topology)));
  }
  const NodeId to = node % side * side + node / side;
  return to == node ? kNoNode : to;
}

// Of patterns that permute the bits of a hub's number.
absl::StatusOr<NodeId> PermutedBits(Pattern pattern, const TopologySpec& topology, NodeId nodes,
                                    NodeId node) {
  if (!std::has_single_bit(nodes)) {
    return absl::InvalidArgumentError(fmt::format(
        "pattern {} needs a number of hubs that is a power of two; this topology "
        "has {}, expected {} or {} hubs",
        PatternName(pattern), Sizes(topology), std::bit_floor(nodes), std::bit_ceil(nodes)));
  }
  if (pattern == Pattern::kBitcomp) return nodes - 1 - node;
  const int bits = std::countr_zero(nodes);
  NodeId to = 0;
  if (pattern == Pattern::kShuffle) {
    to = (node << 1 | node >> (bits - 1)) & (nodes - 1);
  } else {
    for (int bit = 0; bit < bits; ++bit) to |= (node >> bit & 1) << (bits - 1 - bit);
  }
  return to == node ? kNoNode : to;
}

// The neighbours of a hub in a torus of rows x columns.
std::vector<NodeId> StencilOf(NodeId nodes, NodeId node) {
  NodeId rows = 1;
  for (NodeId r = 1; r * r <= nodes; ++r) {
    if (nodes % r == 0) rows = r;
  }
  const NodeId columns = nodes / rows, row = node / columns, column = node % columns;
  std::vector<NodeId> neighbours;
  for (const NodeId to :
       {row * columns + (column + 1) % columns, row * columns + (column + columns - 1) % columns,
        (row + 1) % rows * columns + column, (row + rows - 1) % rows * columns + column}) {
    if (to != node && std::find(neighbours.begin(), neighbours.end(), to) == neighbours.end())
      neighbours.push_back(to);
  }
  return neighbours;
}

// Needs a second supernode, and an offset that does not lead back to the own one.
absl::Status CheckAdversarial(const PatternWorkload& w, const TopologySpec& topology) {
  if (topology.supernodes < 2) {
    return absl::InvalidArgumentError(fmt::format(
        "pattern adversarial needs two supernodes; this topology has {}; expected at least 2 "
        "supernodes",
        Sizes(topology)));
  }
  if (w.supernode_offset < 1 || w.supernode_offset >= topology.supernodes) {
    return absl::InvalidArgumentError(
        fmt::format("supernode_offset {} leads to no other supernode; this topology has {}; "
                    "expected 1 to {}",
                    w.supernode_offset, Sizes(topology), topology.supernodes - 1));
  }
  if (!(w.uniform_fraction >= 0 && w.uniform_fraction <= 1)) {
    return absl::InvalidArgumentError(fmt::format(
        "uniform_fraction {} is not a share; expected from 0 to 1", w.uniform_fraction));
  }
  return absl::OkStatus();
}

absl::StatusOr<NodeId> SupernodePair(const PatternWorkload& w, const TopologySpec& topology,
                                     NodeId node) {
  const auto check = [&](const char* field, int supernode) {
    if (supernode >= 0 && supernode < topology.supernodes) return absl::OkStatus();
    return absl::InvalidArgumentError(
        fmt::format("{} {} does not exist; this topology has {}; expected 0 to {}", field,
                    supernode, Sizes(topology), topology.supernodes - 1));
  };
  if (topology.supernodes < 2) {
    return absl::InvalidArgumentError(fmt::format(
        "pattern supernode_pair needs two supernodes; this topology has {}; expected at least "
        "2 supernodes",
        Sizes(topology)));
  }
  if (auto s = check("source_supernode", w.source_supernode); !s.ok()) return s;
  if (auto s = check("destination_supernode", w.destination_supernode); !s.ok()) return s;
  if (w.source_supernode == w.destination_supernode) {
    return absl::InvalidArgumentError(fmt::format(
        "source_supernode and destination_supernode are both {}; expected two different ones",
        w.source_supernode));
  }
  const NodeId hubs = PlacesOfSupernode(topology);
  if (node / hubs != static_cast<NodeId>(w.source_supernode)) return kNoNode;
  return static_cast<NodeId>(w.destination_supernode) * hubs + node % hubs;
}

absl::Status CheckHotspot(const PatternWorkload& w, const TopologySpec& topology, NodeId nodes) {
  const NodeId hubs = nodes / static_cast<NodeId>(topology.places());
  if (w.hotspot >= hubs) {
    return absl::InvalidArgumentError(
        fmt::format("hotspot {} does not exist; this topology has {}; expected 0 to {}", w.hotspot,
                    Sizes(topology), hubs - 1));
  }
  if (!(w.hotspot_fraction >= 0 && w.hotspot_fraction <= 1)) {
    return absl::InvalidArgumentError(fmt::format(
        "hotspot_fraction {} is not a share; expected from 0 to 1", w.hotspot_fraction));
  }
  return absl::OkStatus();
}

// The multicast groups that a hub sends to.
absl::StatusOr<std::vector<NodeId>> GroupsOf(const PatternWorkload& w, const TopologySpec& spec,
                                             NodeId node) {
  if (spec.multicast.empty()) {
    return absl::InvalidArgumentError(
        "pattern multicast needs a multicast group; this scenario has none; expected a list "
        "under "
        "`multicast:`");
  }
  if (spec.endpoints > 1) {
    return absl::InvalidArgumentError(
        fmt::format("pattern multicast is between hubs; this topology has {}; expected one "
                    "endpoint for each hub",
                    Sizes(spec)));
  }
  if (w.reliable) {
    return absl::InvalidArgumentError(
        "multicast packets are not acknowledged; expected `reliable: false`");
  }
  const auto topology = Topology::Create(spec);
  if (!topology.ok()) return topology.status();
  std::vector<NodeId> groups;
  for (NodeId group = topology->nodes(); group < topology->destinations(); ++group) {
    if (topology->groups()[topology->group_of(group)].source == node) groups.push_back(group);
  }
  return groups;
}

// The list is that of the whole machine, and was checked where it was read.
absl::StatusOr<NodeId> PermutedTo(const PatternWorkload& w, const TopologySpec& topology,
                                  NodeId nodes, NodeId node) {
  if (w.permutation.size() == nodes) return w.permutation[node];
  return absl::InvalidArgumentError(
      fmt::format("pattern permutation has a list for {} places; this topology has {}; expected "
                  "`permutation_file: FILE`",
                  w.permutation.size(), Sizes(topology)));
}

absl::Status CheckAsymmetric(const TopologySpec& topology, NodeId nodes) {
  if (nodes % 2 == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("pattern asymmetric needs an even number of hubs; this topology has {}; expected "
                  "{} or {}",
                  Sizes(topology), nodes - 1, nodes + 1));
}

absl::StatusOr<NodeId> FixedDestination(const PatternWorkload& workload,
                                        const TopologySpec& topology, std::uint64_t seed,
                                        NodeId node) {
  const NodeId supernodes = static_cast<NodeId>(topology.supernodes);
  const NodeId hubs = PlacesOfSupernode(topology);
  const NodeId nodes = supernodes * hubs;
  switch (workload.pattern) {
    case Pattern::kNeighbor:
      return (node + 1) % nodes;
    case Pattern::kTornado:
      return (node + (supernodes > 1 ? HalfWay(supernodes) * hubs : HalfWay(nodes))) % nodes;
    case Pattern::kTranspose:
      return Transpose(topology, nodes, node);
    case Pattern::kBitcomp:
    case Pattern::kBitrev:
    case Pattern::kShuffle:
      return PermutedBits(workload.pattern, topology, nodes, node);
    case Pattern::kRandperm:
      return RandomPermutation(seed, nodes, node);
    case Pattern::kSupernodePair:
      return SupernodePair(workload, topology, node);
    case Pattern::kPermutation:
      return PermutedTo(workload, topology, nodes, node);
    case Pattern::kDiagonal:
    case Pattern::kAsymmetric:
    case Pattern::kUniform:
    case Pattern::kHotspot:
    case Pattern::kMulticast:
    case Pattern::kAdversarial:
    case Pattern::kStencil:
      break;
  }
  PERCS_CHECK(false && "not a pattern of fixed destinations");
  return kNoNode;
}

}  // namespace

NodeId PlacesOf(const TopologySpec& t) {
  return static_cast<NodeId>(t.supernodes) * PlacesOfSupernode(t);
}

const char* PatternName(Pattern pattern) {
  constexpr const char* kNames[] = {"uniform",   "hotspot",     "neighbor", "tornado",
                                    "transpose", "bitcomp",     "randperm", "supernode_pair",
                                    "multicast", "bitrev",      "shuffle",  "adversarial",
                                    "stencil",   "permutation", "diagonal", "asymmetric"};
  PERCS_CHECK(static_cast<std::size_t>(pattern) < std::size(kNames));
  return kNames[static_cast<int>(pattern)];
}

NodeId DestinationPattern::DrawPerhapsItself(RandomStream& random) const {
  if (kind_ == Kind::kDiagonal) return random.Below(3) == 0 ? fixed_ : node_;
  return fixed_ + random.Below(2) * hubs_;
}

absl::StatusOr<DestinationPattern> DestinationPattern::Create(const PatternWorkload& workload,
                                                              const TopologySpec& topology,
                                                              std::uint64_t seed, NodeId node) {
  const NodeId nodes = PlacesOf(topology);
  PERCS_CHECK(node < nodes);
  if (nodes < 2) {
    return absl::InvalidArgumentError(fmt::format(
        "pattern {} needs a destination; this topology has {}; expected at least 2 hubs",
        PatternName(workload.pattern), Sizes(topology)));
  }
  DestinationPattern p;
  p.node_ = node;
  p.nodes_ = nodes;
  p.hotspot_fraction_ = workload.hotspot_fraction;
  if (workload.pattern == Pattern::kUniform) {
    p.kind_ = Kind::kUniform;
  } else if (workload.pattern == Pattern::kMulticast) {
    auto groups = GroupsOf(workload, topology, node);
    if (!groups.ok()) return groups.status();
    p.in_turn_ = *std::move(groups);
    p.fixed_ = kNoNode;
    if (!p.in_turn_.empty()) p.kind_ = Kind::kInTurn;
  } else if (workload.pattern == Pattern::kStencil) {
    p.in_turn_ = StencilOf(nodes, node);
    p.kind_ = Kind::kInTurn;
  } else if (workload.pattern == Pattern::kAdversarial) {
    if (auto s = CheckAdversarial(workload, topology); !s.ok()) return s;
    p.kind_ = Kind::kAdversarial;
    const auto supernodes = static_cast<NodeId>(topology.supernodes);
    p.hubs_ = nodes / supernodes;
    p.fixed_ =
        (node / p.hubs_ + static_cast<NodeId>(workload.supernode_offset)) % supernodes * p.hubs_;
    p.uniform_fraction_ = workload.uniform_fraction;
  } else if (workload.pattern == Pattern::kHotspot) {
    if (auto s = CheckHotspot(workload, topology, nodes); !s.ok()) return s;
    p.fixed_ = workload.hotspot * static_cast<NodeId>(topology.places());
    p.kind_ = node == p.fixed_ ? Kind::kUniform : Kind::kHotspot;
  } else if (workload.pattern == Pattern::kDiagonal) {
    p.kind_ = Kind::kDiagonal;
    p.fixed_ = (node + 1) % nodes;
  } else if (workload.pattern == Pattern::kAsymmetric) {
    if (auto s = CheckAsymmetric(topology, nodes); !s.ok()) return s;
    p.kind_ = Kind::kAsymmetric;
    p.hubs_ = nodes / 2;
    p.fixed_ = node % p.hubs_;
  } else {
    absl::StatusOr<NodeId> fixed = FixedDestination(workload, topology, seed, node);
    if (!fixed.ok()) return fixed.status();
    p.fixed_ = *fixed;
  }
  return p;
}

}  // namespace percs
