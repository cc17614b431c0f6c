// Broadcasts from SPE 0. The plain forms finish each phase before the next; the forms for blades
// start each child's DMA as soon as that child is ready.
#include <bit>

#include "emulator/cell/collectives/collectives.h"
#include "fmt/format.h"

namespace percs::cell {

Task<> Collectives::MoveToChild(int child, std::uint32_t bytes, int tag) {
  spe_.Compute(spe_.parameters().software_partner);
  co_await spe_.Put(group_.buffer(), LocalStoreAddress(child, group_.buffer()), bytes, tag);
}

Task<> Collectives::PhasedBroadcast(std::uint32_t bytes) {
  co_await WaitForAll(ChildBits());
  if (place_.parent >= 0) {
    co_await Signal(place_.parent);
    co_await WaitForAll(Bit(place_.parent));
  }
  for (int i = 0; i < place_.children; ++i) co_await MoveToChild(place_.child[i], bytes, i);
  if (place_.children > 0) co_await spe_.WaitTagAll((1u << place_.children) - 1);
  for (int i = 0; i < place_.children; ++i) co_await Signal(place_.child[i]);
}

Task<> Collectives::OverlappedBroadcast(std::uint32_t bytes) {
  const int parent = place_.parent;
  if (parent >= 0) co_await Signal(parent);
  bool have_data = parent < 0;
  std::uint32_t awaited = ChildBits() | (have_data ? 0 : Bit(parent));
  ReadyList ready;
  int issued = 0;
  while (issued < place_.children || !have_data) {
    std::uint32_t come = co_await WaitForAny(awaited);
    awaited &= ~(come << shift_);
    if (!have_data && (come & (1u << parent)) != 0) {
      have_data = true;
      come &= ~(1u << parent);
    }
    ready.Add(come);
    spe_.Compute(spe_.parameters().software_partner * std::popcount(come));
    for (; have_data && issued < ready.count; ++issued) {
      co_await MoveToChild(ready.child[issued], bytes, ready.child[issued]);
    }
  }
  ready.PutFirst(kSpesPerCell);  // the other Cell's root, no SPE's child here
  for (int i = 0; i < ready.count; ++i) {
    co_await spe_.WaitTagAll(1u << ready.child[i]);
    co_await Signal(ready.child[i]);
  }
}

Task<> Collectives::Broadcast(std::uint32_t bytes, AlgorithmSpec spec) {
  if (bytes == 0 || bytes > kCollectiveBufferBytes) {
    co_await spe_.Break(absl::InvalidArgumentError(
        fmt::format("broadcast rule: {} bytes; the buffer holds {}, so write 1 to {}", bytes,
                    kCollectiveBufferBytes, kCollectiveBufferBytes)));
  }
  if (spec.algorithm == Algorithm::kAuto) {
    spec = BestAlgorithm(Collective::kBroadcast, group_.spes(), bytes);
  }
  if (spec.algorithm == Algorithm::kPairwise) {
    co_await spe_.Break(absl::InvalidArgumentError(
        "broadcast rule: pairwise exchange cannot separate ready from go; use ATO or TT"));
  }
  co_await Settle(spec);
  Begin(spec, /*linked=*/true);
  last_rooted_ = true;
  const std::uint32_t moved = DmaBytes(bytes);
  if (spec.algorithm == Algorithm::kAllToOneBlade || spec.algorithm == Algorithm::kTreeBlade) {
    co_await OverlappedBroadcast(moved);
  } else {
    co_await PhasedBroadcast(moved);
  }
}

}  // namespace percs::cell
