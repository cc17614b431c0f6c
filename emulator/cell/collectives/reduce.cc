// Reductions into SPE 0. A parent fetches each child's vector into its buffer and combines it with
// its own; a buffer that cannot hold all children's vectors is used again once one has been
// combined.
#include <algorithm>
#include <bit>
#include <cstring>

#include "emulator/cell/collectives/collectives.h"
#include "fmt/format.h"

namespace percs::cell {
namespace {

template <typename T>
T Apply(ReduceOp op, T a, T b) {
  switch (op) {
    case ReduceOp::kMin:
      return std::min(a, b);
    case ReduceOp::kMax:
      return std::max(a, b);
    case ReduceOp::kAdd:
      break;
  }
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<std::uint32_t>(a) + static_cast<std::uint32_t>(b));
  } else {
    return a + b;
  }
}

template <typename T>
void CombineInto(std::uint8_t* to, const std::uint8_t* from, std::uint32_t elements, ReduceOp op) {
  for (std::uint32_t i = 0; i < elements; ++i, to += sizeof(T), from += sizeof(T)) {
    T a, b;
    std::memcpy(&a, to, sizeof(T));
    std::memcpy(&b, from, sizeof(T));
    a = Apply(op, a, b);
    std::memcpy(to, &a, sizeof(T));
  }
}

}  // namespace

Task<> Collectives::FetchFromChild(int child, Vector v, int slot) {
  spe_.Compute(spe_.parameters().software_partner);
  const LsAddress at = group_.buffer() + static_cast<std::uint32_t>(slot) * v.slot_bytes;
  co_await spe_.Get(at, LocalStoreAddress(child, v.at), v.dma_bytes, slot);
}

Task<> Collectives::Combine(Vector v, int slot) {
  co_await spe_.WaitTagAll(1u << slot);
  std::uint8_t* const own = spe_.local_store().at(v.at);
  const std::uint8_t* const other =
      spe_.local_store().at(group_.buffer() + static_cast<std::uint32_t>(slot) * v.slot_bytes);
  if (v.type == ReduceType::kInt) {
    CombineInto<std::int32_t>(own, other, v.elements, v.op);
  } else {
    CombineInto<float>(own, other, v.elements, v.op);
  }
  const BladeParameters& p = spe_.parameters();
  spe_.Compute(p.combine_call + p.combine_vector * ((v.elements + 3) / 4));
}

Task<> Collectives::PhasedReduce(Vector v) {
  co_await WaitForAll(ChildBits());
  for (int first = 0; first < place_.children; first += v.slots) {
    const int count = std::min(v.slots, place_.children - first);
    for (int i = 0; i < count; ++i) co_await FetchFromChild(place_.child[first + i], v, i);
    co_await spe_.WaitTagAll((1u << count) - 1);
    for (int i = 0; i < count; ++i) co_await Combine(v, i);
  }
  if (place_.parent >= 0) {
    co_await Signal(place_.parent);
    co_await WaitForAll(Bit(place_.parent));
  }
  for (int i = 0; i < place_.children; ++i) co_await Signal(place_.child[i]);
}

Task<> Collectives::OverlappedReduce(Vector v) {
  ReadyList ready;
  std::uint32_t awaited = ChildBits();
  int fetched = 0;
  while (ready.count < place_.children) {
    const std::uint32_t come = co_await WaitForAny(awaited);
    awaited &= ~(come << shift_);
    ready.Add(come);
    spe_.Compute(spe_.parameters().software_partner * std::popcount(come));
    for (; fetched < std::min(ready.count, v.slots); ++fetched) {
      co_await FetchFromChild(ready.child[fetched], v, fetched);
    }
  }
  // The other Cell's root first, if its vector is on its way.
  std::array<std::uint8_t, kSpes> order, slot_of;
  for (int i = 0; i < ready.count; ++i) order[i] = slot_of[i] = static_cast<std::uint8_t>(i);
  for (int i = 1; i < fetched; ++i) {
    if (ready.child[i] == kSpesPerCell) std::rotate(&order[0], &order[i], &order[i + 1]);
  }
  for (int i = 0; i < ready.count; ++i) {
    const int which = order[i], slot = slot_of[which];
    co_await Combine(v, slot);
    if (fetched < ready.count) {
      slot_of[fetched] = static_cast<std::uint8_t>(slot);
      co_await FetchFromChild(ready.child[fetched++], v, slot);
    }
    co_await Signal(ready.child[which]);
  }
  if (place_.parent >= 0) {
    co_await Signal(place_.parent);
    co_await WaitForAll(Bit(place_.parent));
  }
}

Task<> Collectives::Reduce(LsAddress vector, std::uint32_t elements, ReduceOp op, ReduceType type,
                           AlgorithmSpec spec) {
  if (spec.algorithm == Algorithm::kAuto) {
    spec = BestAlgorithm(Collective::kReduce, group_.spes(), elements * 4);
  }
  const bool tree = spec.algorithm == Algorithm::kTree || spec.algorithm == Algorithm::kTreeBlade;
  const std::uint32_t limit = tree ? kTreeElementsMax : kAllToOneElementsMax;
  if (elements == 0 || elements > limit) {
    co_await spe_.Break(absl::InvalidArgumentError(
        fmt::format("reduce rule: {} elements; {} takes 1 to {}", elements,
                    NameOf(Collective::kReduce, spec), limit)));
  }
  if (spec.algorithm == Algorithm::kPairwise) {
    co_await spe_.Break(absl::InvalidArgumentError(
        "reduce rule: pairwise exchange cannot separate ready from go; use ATO or TT"));
  }
  Vector v;
  v.at = vector;
  v.elements = elements;
  v.dma_bytes = DmaBytes(elements * 4);
  v.slot_bytes = (v.dma_bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
  v.op = op;
  v.type = type;
  if (vector % 16 != 0 || vector > kLocalStoreBytes || v.dma_bytes > kLocalStoreBytes - vector ||
      (vector < buffer() + kCollectiveBufferBytes && vector + v.dma_bytes > buffer())) {
    co_await spe_.Break(absl::InvalidArgumentError(fmt::format(
        "reduce rule: a vector of {} bytes at {:#x}; it must lie in the local store, outside "
        "the buffer, from a multiple of 16 on",
        v.dma_bytes, vector)));
  }
  co_await Settle(spec);
  Begin(spec, /*linked=*/true);
  last_rooted_ = true;
  v.slots = std::clamp<int>(static_cast<int>(kCollectiveBufferBytes / v.slot_bytes), 1,
                            std::max(place_.children, 1));
  if (spec.algorithm == Algorithm::kAllToOneBlade || spec.algorithm == Algorithm::kTreeBlade) {
    co_await OverlappedReduce(v);
  } else {
    co_await PhasedReduce(v);
  }
}

}  // namespace percs::cell
