// Collectives of CML: a tree whose upper part joins one SPE of each blade, so that a blade's PPEs
// and its chip link carry one message each way, and below it one of each Cell (RR-058).
#include <algorithm>
#include <cstring>
#include <utility>

#include "emulator/roadrunner/cml.h"
#include "fmt/format.h"

namespace percs::roadrunner {
namespace {

constexpr int kBcastTag = 0, kReduceTag = 1, kUpTag = 2, kDownTag = 3;  // behind the users'

// Children of member v of n in a binomial tree, far ones first; its parent.
template <typename Visit>
void BinomialChildren(int v, int n, Visit visit) {
  int bit = 1;
  while (bit < n && (v & bit) == 0) bit *= 2;
  for (bit /= 2; bit > 0; bit /= 2) {
    if (v + bit < n) visit(v + bit);
  }
}
int BinomialParent(int v) { return v & (v - 1); }

}  // namespace

Cml::Group Cml::GroupOf(Comm comm) const {
  if (comm == Comm::kWorld) return {0, domain_.ranks};
  const int size = domain_.parameters.cml.mem_domain_cells * cell::kSpesPerCell;
  const Rank first = rank_ / size * size;
  return {first, std::min(size, domain_.ranks - first)};
}

// Groups are whole blades or Cells, the last one cut short. A group's leader is the root if it is
// in it, else its first rank.
Cml::Family Cml::FamilyOf(Rank root, Comm comm) const {
  const Group group = GroupOf(comm);
  const Rank end = group.first + group.size;
  const auto leader = [root](int unit, int unit_ranks) {
    return root / unit_ranks == unit ? root : static_cast<Rank>(unit * unit_ranks);
  };
  Family family;
  const auto add = [&family](Rank child) {
    family.child[static_cast<std::size_t>(family.children++)] = child;
  };
  const int blade = BladeOf(rank_), cell = CellOf(rank_);
  const Rank of_blade = std::max(group.first, leader(blade, cell::kSpes));
  const Rank of_cell = leader(cell, cell::kSpesPerCell);
  if (rank_ == of_blade) {
    const int blades = (end + cell::kSpes - 1) / cell::kSpes - group.first / cell::kSpes;
    const int first = group.first / cell::kSpes, root_blade = BladeOf(root) - first;
    const int v = (blade - first - root_blade + blades) % blades;
    const auto blade_at = [&](int u) { return first + (u + root_blade) % blades; };
    BinomialChildren(v, blades, [&](int u) { add(leader(blade_at(u), cell::kSpes)); });
    if (v > 0) family.parent = leader(blade_at(BinomialParent(v)), cell::kSpes);
    for (int c = 0; c < cell::kCells; ++c) {
      const int other = blade * cell::kCells + c;
      const Rank first_rank = static_cast<Rank>(other * cell::kSpesPerCell);
      if (other != cell && first_rank >= group.first && first_rank < end) add(first_rank);
    }
  } else if (rank_ == of_cell) {
    family.parent = of_blade;
  }
  const Rank first = static_cast<Rank>(cell * cell::kSpesPerCell);
  const int members = std::min<int>(cell::kSpesPerCell, end - first), lead = of_cell - first;
  const int v = (rank_ - first - lead + members) % members;
  const auto rank_at = [&](int u) { return first + static_cast<Rank>((u + lead) % members); };
  BinomialChildren(v, members, [&](int u) { add(rank_at(u)); });
  if (v > 0) family.parent = rank_at(BinomialParent(v));
  return family;
}

Task<> Cml::Down(LsAddress buffer, std::uint32_t bytes, Rank root, Comm comm) {
  const Family family = FamilyOf(root, comm);
  const int tag = domain_.parameters.cml.tags + (bytes > 0 ? kBcastTag : kDownTag);
  if (family.parent >= 0) co_await ReceiveFrom(buffer, bytes, family.parent, tag);
  for (int i = 0; i < family.children; ++i) {
    co_await SendTo(buffer, bytes, family.child[static_cast<std::size_t>(i)], tag);
  }
}

// Piece by piece, which is all that has room beside the program's own buffers.
Task<> Cml::Up(LsAddress from, LsAddress to, std::uint32_t count, OperandType type, ReduceOp op,
               Rank root, Comm comm) {
  const Family family = FamilyOf(root, comm);
  const auto width = static_cast<std::uint32_t>(OperandBytes(type));
  const std::uint32_t step = kPieceBytes / width;
  const int tag = domain_.parameters.cml.tags + kReduceTag;
  for (std::uint32_t done = 0; done < count; done += step) {
    const std::uint32_t elements = std::min(step, count - done), bytes = elements * width;
    std::memcpy(at(kOwnPiece), at(from + done * width), bytes);
    for (int i = family.children - 1; i >= 0; --i) {
      co_await ReceiveFrom(kTheirPiece, bytes, family.child[static_cast<std::size_t>(i)], tag);
      Combine(op, type, elements, at(kTheirPiece), at(kOwnPiece));
      co_await spe_.Compute((bytes + 15) / 16 * domain_.parameters.blade.combine_vector);
    }
    if (family.parent >= 0) {
      co_await SendTo(kOwnPiece, bytes, family.parent, tag);
    } else {
      std::memcpy(at(to + done * width), at(kOwnPiece), bytes);
    }
  }
}

Task<> Cml::Meet(Comm comm) {
  const Rank root = GroupOf(comm).first;
  const Family family = FamilyOf(root, comm);
  const int tag = domain_.parameters.cml.tags + kUpTag;
  for (int i = family.children - 1; i >= 0; --i) {
    co_await ReceiveFrom(kTheirPiece, 0, family.child[static_cast<std::size_t>(i)], tag);
  }
  if (family.parent >= 0) co_await SendTo(kOwnPiece, 0, family.parent, tag);
  co_await Down(kOwnPiece, 0, root, comm);
}

Task<> Cml::Barrier(Comm comm) {
  Enter(MpiFunction::kBarrier);
  if (absl::Status s = CheckCall(MpiFunction::kBarrier); !s.ok()) co_await Break(s);
  co_await Meet(comm);
  Leave(MpiFunction::kBarrier);
}

Task<> Cml::Bcast(LsAddress buffer, std::uint32_t bytes, Rank root, Comm comm) {
  Enter(MpiFunction::kBcast);
  if (absl::Status s = CheckTransfer(MpiFunction::kBcast, buffer, bytes, root, 0, comm); !s.ok()) {
    co_await Break(s);
  }
  if (bytes > 0) co_await Down(buffer, bytes, GroupOf(comm).first + root, comm);
  Leave(MpiFunction::kBcast);
}

Task<> Cml::Reduce(LsAddress from, LsAddress to, std::uint32_t count, OperandType type, ReduceOp op,
                   Rank root, Comm comm) {
  Enter(MpiFunction::kReduce);
  absl::Status s = CheckReduction(op, type);
  const std::uint64_t bytes = std::uint64_t{count} * OperandBytes(type);
  if (s.ok()) s = CheckTransfer(MpiFunction::kReduce, from, bytes, root, 0, comm);
  if (s.ok()) s = CheckTransfer(MpiFunction::kReduce, to, bytes, root, 0, comm);
  if (!s.ok()) co_await Break(s);
  co_await Up(from, to, count, type, op, GroupOf(comm).first + root, comm);
  Leave(MpiFunction::kReduce);
}

Task<> Cml::Allreduce(LsAddress from, LsAddress to, std::uint32_t count, OperandType type,
                      ReduceOp op, Comm comm) {
  Enter(MpiFunction::kAllreduce);
  absl::Status s = CheckReduction(op, type);
  const std::uint64_t bytes = std::uint64_t{count} * OperandBytes(type);
  if (s.ok()) s = CheckTransfer(MpiFunction::kAllreduce, from, bytes, 0, 0, comm);
  if (s.ok()) s = CheckTransfer(MpiFunction::kAllreduce, to, bytes, 0, 0, comm);
  if (!s.ok()) co_await Break(s);
  const Rank root = GroupOf(comm).first;
  co_await Up(from, to, count, type, op, root, comm);
  if (bytes > 0) co_await Down(to, static_cast<std::uint32_t>(bytes), root, comm);
  Leave(MpiFunction::kAllreduce);
}

}  // namespace percs::roadrunner
