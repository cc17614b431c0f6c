// Where a place sends next under a synthetic pattern. Places are the hubs, numbered supernode by
// supernode, or their endpoints, if hubs have some (TopologySpec::endpoints), numbered hub by hub.
// Of N places, "hubs" here, n sends to
//   uniform         any other hub, all alike;
//   hotspot         `hotspot` with probability `hotspot_fraction`, else uniform; the hotspot itself
//                   is always uniform;
//   neighbor        (n + 1) mod N;
//   tornado         half-way round: with S > 1 supernodes the same hub of supernode
//                   (s + max(1, ceil(S/2) - 1)) mod S, else hub (n + max(1, ceil(N/2) - 1)) mod N;
//   transpose       N seen as a square matrix, row r and column c to row c and column r; the
//                   diagonal is silent; N must be a square;
//   bitcomp         N - 1 - n, every bit of the number inverted; N must be a power of two;
//   randperm        its successor in one random circle of all hubs, drawn from the scenario's seed
//                   and the same on every hub: a permutation in which no hub sends to itself;
//   supernode_pair  hub i of `source_supernode` to hub i of `destination_supernode`, all other hubs
//                   are silent; S > 1;
//   multicast       the source of multicast groups to each of them in turn; all other hubs are
//                   silent;
//   bitrev          the hub whose number has the bits of n in reverse order; hubs that are their
//                   own are silent; N must be a power of two;
//   shuffle         the bits of n rotated left by one; likewise;
//   adversarial     any hub of supernode (s + supernode_offset) mod S, all alike; with probability
//                   `uniform_fraction` any other hub; S > 1 (ADV+i of the dragonfly literature:
//                   Kim, Dally, Scott, Abts, ISCA 2008);
//   stencil         in turn its neighbours in a torus of R x C hubs, row by row: east, west, south,
//                   north, each once; R is the largest divisor of N that is at most its root;
//   permutation     the one that a list names; hubs that it does not name are silent;
//   diagonal        (n + 1) mod N with probability 1/3, else itself (BookSim2);
//   asymmetric      n mod N/2, or that + N/2, both alike, so perhaps itself; N is even (BookSim2).
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "emulator/base/ids.h"
#include "emulator/base/random.h"
#include "emulator/scenario/scenario.h"
#include "emulator/topology/topology.h"

namespace percs {

const char* PatternName(Pattern pattern);
NodeId PlacesOf(const TopologySpec& topology);

class DestinationPattern {
 public:
  // INVALID_ARGUMENT when the pattern does not exist on this topology, with the sizes it needs.
  // REQUIRES: a valid topology, place < its places. The answer to every place is the same status.
  static absl::StatusOr<DestinationPattern> Create(const PatternWorkload& workload,
                                                   const TopologySpec& topology, std::uint64_t seed,
                                                   NodeId place);

  // This place never sends: Draw returns kNoNode.
  bool silent() const { return kind_ == Kind::kFixed && fixed_ == kNoNode; }
  // The only destination, if there is one.
  NodeId fixed() const { return kind_ == Kind::kFixed ? fixed_ : kNoNode; }
  // The next destination, a place, or a multicast group; this place itself only of diagonal and
  // asymmetric. Draws from `random` only for uniform, diagonal and asymmetric (once), hotspot
  // (once, and again when the uniform share is hit) and adversarial (once, and before that for a
  // uniform share above 0).
  [[gnu::always_inline]] NodeId Draw(RandomStream& random) {
    if (kind_ == Kind::kFixed) return fixed_;
    if (kind_ == Kind::kInTurn) return in_turn_[next_in_turn_++ % in_turn_.size()];
    if (kind_ >= Kind::kDiagonal) [[unlikely]]
      return DrawPerhapsItself(random);
    if (kind_ == Kind::kHotspot && random.Unit() <= hotspot_fraction_) return fixed_;
    if (kind_ == Kind::kAdversarial &&
        (uniform_fraction_ == 0 || random.Unit() > uniform_fraction_)) {
      return fixed_ + random.Below(hubs_);
    }
    const NodeId other = random.Below(nodes_ - 1);
    return other < node_ ? other : other + 1;
  }

 private:
  NodeId DrawPerhapsItself(RandomStream& random) const;

  enum class Kind : std::uint8_t {
    kFixed,
    kUniform,
    kHotspot,
    kInTurn,
    kAdversarial,
    kDiagonal,  // from here on, perhaps to itself
    kAsymmetric
  };

  Kind kind_ = Kind::kFixed;
  NodeId node_ = 0, nodes_ = 0;  // this place, and all
  NodeId fixed_ = kNoNode;       // adversarial: the first place of the supernode sent to
  NodeId hubs_ = 0;              // places of a supernode; asymmetric: half of all
  double hotspot_fraction_ = 0, uniform_fraction_ = 0;
  std::vector<NodeId> in_turn_;
  std::size_t next_in_turn_ = 0;
};

}  // namespace percs
