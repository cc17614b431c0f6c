// Barriers: all-to-one and tree, alone or one per Cell with an exchange of the roots, and pairwise
// exchange. All-to-one is a tree of one level.
#include <bit>

#include "emulator/cell/collectives/collectives.h"

namespace percs::cell {

// Signals go up once all children's have come, across between the two roots, and down again.
Task<> Collectives::TreeBarrier() {
  co_await WaitForAll(ChildBits());
  if (place_.parent >= 0) {
    co_await Signal(place_.parent);
    co_await WaitForAll(Bit(place_.parent));
  } else if (place_.other_root >= 0) {
    co_await Signal(place_.other_root);
    co_await WaitForAll(Bit(place_.other_root));
  }
  for (int i = 0; i < place_.children; ++i) co_await Signal(place_.child[i]);
}

// M is the largest power of two not above the count. Ranks from M on signal rank - M and wait for
// its answer.
Task<> Collectives::PairwiseBarrier() {
  const int spes = group_.spes(), rank = spe_.index();
  const int whole = static_cast<int>(std::bit_floor(static_cast<unsigned>(spes)));
  if (rank >= whole) {
    co_await Signal(rank - whole);
    co_await WaitForAll(Bit(rank - whole));
    co_return;
  }
  const bool has_extra = rank + whole < spes;
  if (has_extra) co_await WaitForAll(Bit(rank + whole));
  for (int step = 1; step < whole; step *= 2) {
    co_await Signal(rank ^ step);
    co_await WaitForAll(Bit(rank ^ step));
  }
  if (has_extra) co_await Signal(rank + whole);
}

Task<> Collectives::Barrier(AlgorithmSpec spec) {
  if (spec.algorithm == Algorithm::kAuto) {
    spec = BestAlgorithm(Collective::kBarrier, group_.spes(), 0);
  }
  co_await Settle(spec);
  Begin(spec, /*linked=*/false);
  last_rooted_ = false;
  if (spec.algorithm == Algorithm::kPairwise) {
    co_await PairwiseBarrier();
  } else {
    co_await TreeBarrier();
  }
}

}  // namespace percs::cell
