// The algorithms of the collectives of a dual-Cell blade (paper 001 section 3), and the tree of
// each.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "emulator/cell/blade_parameters.h"

namespace percs::cell {

enum class Collective : std::uint8_t { kBarrier, kBroadcast, kReduce };

// For broadcast and reduce the forms for blades are the optimised ones (ATOBcastB_Opt and so on).
enum class Algorithm : std::uint8_t {
  kAuto,
  kAllToOne,       // ATO: every SPE speaks to the root
  kAllToOneBlade,  // ATOB: to the root of its Cell; the roots speak to each other
  kTree,           // TT: a tree of a given degree over all SPEs
  kTreeBlade,      // TTB: a tree per Cell; the roots speak to each other
  kPairwise,       // PE: barrier only
};

struct AlgorithmSpec {
  Algorithm algorithm = Algorithm::kAuto;
  int degree = 2;  // of the trees
  bool operator==(const AlgorithmSpec&) const = default;
};

// "ATOBar", "TTBcastB_Opt D3", "PEBar".
std::string NameOf(Collective collective, const AlgorithmSpec& spec);
// As NameOf gives it, or "auto"; the degree may be left out. INVALID_ARGUMENT lists what there is.
absl::StatusOr<AlgorithmSpec> AlgorithmNamed(Collective collective, std::string_view name);

// The fastest algorithm for this many SPEs and bytes (0 for a barrier). Where broadcasts and
// reductions change over is docs/cell.md.
AlgorithmSpec BestAlgorithm(Collective collective, int spes, std::uint32_t bytes);

// One SPE's place. Ranks are SPE numbers: 0 to 7 are on Cell 0. The root is rank 0.
struct TreePlace {
  int parent = -1;  // -1: none
  int children = 0;
  std::array<std::uint8_t, kSpes> child{};
  int other_root = -1;  // of the blade forms: on the other Cell, as seen by either root
};
// `spes` 1 to 16, degree at least 2. Linked: the second Cell's root is the root's first child, as
// in broadcasts and reductions; otherwise the two Cells' trees stand apart, as in barriers.
TreePlace PlaceInTree(const AlgorithmSpec& spec, int spes, int rank, bool linked);

}  // namespace percs::cell
