#include "emulator/cell/collectives/algorithm.h"

#include <algorithm>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "fmt/format.h"

namespace percs::cell {
namespace {

constexpr const char* kSuffix[] = {"Bar", "Bcast", "Red"};

bool IsTree(Algorithm a) { return a == Algorithm::kTree || a == Algorithm::kTreeBlade; }

// Heap order: the children of k are d k + 1 to d k + d.
void PlaceInHeap(int first, int count, int degree, int rank, TreePlace* place) {
  const int k = rank - first;
  if (k > 0) place->parent = first + (k - 1) / degree;
  for (int c = degree * k + 1; c <= degree * k + degree && c < count; ++c) {
    place->child[place->children++] = static_cast<std::uint8_t>(first + c);
  }
}

}  // namespace

std::string NameOf(Collective collective, const AlgorithmSpec& spec) {
  const char* const suffix = kSuffix[static_cast<int>(collective)];
  const char* const blade = collective == Collective::kBarrier ? "B" : "B_Opt";
  switch (spec.algorithm) {
    case Algorithm::kAuto:
      return "auto";
    case Algorithm::kAllToOne:
      return fmt::format("ATO{}", suffix);
    case Algorithm::kAllToOneBlade:
      return fmt::format("ATO{}{}", suffix, blade);
    case Algorithm::kTree:
      return fmt::format("TT{} D{}", suffix, spec.degree);
    case Algorithm::kTreeBlade:
      return fmt::format("TT{}{} D{}", suffix, blade, spec.degree);
    case Algorithm::kPairwise:
      return fmt::format("PE{}", suffix);
  }
  return {};
}

absl::StatusOr<AlgorithmSpec> AlgorithmNamed(Collective collective, std::string_view name) {
  AlgorithmSpec spec;
  std::string_view base = name;
  if (const auto d = name.rfind(" D"); d != std::string_view::npos) {
    if (!absl::SimpleAtoi(absl::string_view(name.data() + d + 2, name.size() - d - 2),
                          &spec.degree) ||
        spec.degree < 2 || spec.degree >= kSpes) {
      return absl::InvalidArgumentError(
          fmt::format("'{}': the degree of a tree is 2 to {}", std::string(name), kSpes - 1));
    }
    base = name.substr(0, d);
  }
  std::vector<std::string> names;
  for (Algorithm a : {Algorithm::kAuto, Algorithm::kAllToOne, Algorithm::kAllToOneBlade,
                      Algorithm::kTree, Algorithm::kTreeBlade, Algorithm::kPairwise}) {
    if (a == Algorithm::kPairwise && collective != Collective::kBarrier) continue;
    std::string full = NameOf(collective, {a, 2});
    std::string short_name = full.substr(0, full.find(" D"));
    names.push_back(IsTree(a) ? short_name + "[ D<degree>]" : short_name);
    if (base == short_name && (base == name || IsTree(a))) {
      spec.algorithm = a;
      return spec;
    }
  }
  return absl::InvalidArgumentError(fmt::format("unknown algorithm '{}'; it is one of {}",
                                                std::string(name), absl::StrJoin(names, ", ")));
}

TreePlace PlaceInTree(const AlgorithmSpec& spec, int spes, int rank, bool linked) {
  const bool blade =
      spec.algorithm == Algorithm::kAllToOneBlade || spec.algorithm == Algorithm::kTreeBlade;
  const int degree = IsTree(spec.algorithm) ? spec.degree : kSpes;
  TreePlace place;
  if (!blade || spes <= kSpesPerCell) {
    PlaceInHeap(0, spes, degree, rank, &place);
    return place;
  }
  const int cell = rank / kSpesPerCell;
  const int first = cell * kSpesPerCell;
  if (rank == first) {
    place.other_root = cell == 0 ? kSpesPerCell : 0;
    if (linked && cell == 0) place.child[place.children++] = kSpesPerCell;
    if (linked && cell == 1) place.parent = 0;
  }
  PlaceInHeap(first, std::min(kSpesPerCell, spes - first), degree, rank, &place);
  return place;
}

// Where the forms change over on a QS20 (docs/cell.md); a test holds them to what the emulator
// measures.
AlgorithmSpec BestAlgorithm(Collective collective, int spes, std::uint32_t bytes) {
  constexpr AlgorithmSpec kAto{Algorithm::kAllToOne, 2}, kAtoB{Algorithm::kAllToOneBlade, 2};
  constexpr AlgorithmSpec kTtB2{Algorithm::kTreeBlade, 2}, kTtB3{Algorithm::kTreeBlade, 3};
  if (collective == Collective::kBarrier) {
    const bool power_of_two = (spes & (spes - 1)) == 0;
    return power_of_two ? AlgorithmSpec{Algorithm::kPairwise, 2} : kAtoB;
  }
  if (collective == Collective::kReduce && bytes > 4 * 512) {
    return spes == 4 || spes == 5 ? kTtB3 : kTtB2;  // more than all-to-one can hold
  }
  if (spes <= 2) return kAto;
  if (spes == 3) return kAtoB;
  if (collective == Collective::kBroadcast && bytes > 4096) return spes == 5 ? kTtB3 : kTtB2;
  int all_to_one_up_to = 6;
  if (collective == Collective::kBroadcast && bytes > 512) all_to_one_up_to = bytes > 2048 ? 5 : 7;
  return spes <= all_to_one_up_to ? kAtoB : kTtB2;
}

}  // namespace percs::cell
