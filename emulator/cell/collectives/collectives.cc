#include "emulator/cell/collectives/collectives.h"

#include <algorithm>
#include <bit>

#include "fmt/format.h"

namespace percs::cell {

absl::StatusOr<CollectiveGroup> CollectiveGroup::Create(int spes, LsAddress buffer,
                                                        int signal_register) {
  if (spes < 1 || spes > kSpes) {
    return absl::InvalidArgumentError(
        fmt::format("a group of {} SPEs; a blade has {}, so write 1 to {}", spes, kSpes, kSpes));
  }
  if (buffer % kLineBytes != 0 || buffer > kLocalStoreBytes - kCollectiveBufferBytes) {
    return absl::InvalidArgumentError(fmt::format(
        "buffer at {:#x}; its {} bytes must lie in the local store from a multiple of {} on",
        buffer, kCollectiveBufferBytes, kLineBytes));
  }
  if (signal_register < 1 || signal_register > 2) {
    return absl::InvalidArgumentError(
        fmt::format("signal register {}; an SPE has registers 1 and 2", signal_register));
  }
  CollectiveGroup group;
  group.spes_ = spes;
  group.buffer_ = buffer;
  group.signal_register_ = signal_register;
  return group;
}

Collectives::Collectives(Spe& spe, const CollectiveGroup& group) : spe_(spe), group_(group) {
  spe.SetSignalMode(group.signal_register(), SignalMode::kOr);
}

void Collectives::ReadyList::Add(std::uint32_t bits) {
  for (; bits != 0; bits &= bits - 1) {
    child[count++] = static_cast<std::uint8_t>(std::countr_zero(bits));
  }
}

void Collectives::ReadyList::PutFirst(int rank) {
  const auto end = child.begin() + count;
  const auto at = std::find(child.begin(), end, static_cast<std::uint8_t>(rank));
  if (at != end) std::rotate(child.begin(), at, at + 1);
}

void Collectives::Begin(const AlgorithmSpec& spec, bool linked) {
  if (spec != last_ || linked != last_linked_) {
    place_ = PlaceInTree(spec, group_.spes(), spe_.index(), linked);
    if (linked) place_.other_root = -1;
  }
  last_ = spec;
  last_linked_ = linked;
  shift_ ^= 16;
}

std::uint32_t Collectives::ChildBits() const {
  std::uint32_t bits = 0;
  for (int i = 0; i < place_.children; ++i) bits |= Bit(place_.child[i]);
  return bits;
}

Task<> Collectives::Signal(int partner) {
  spe_.Compute(spe_.parameters().software_partner);
  co_await spe_.SendSignal(partner, group_.signal_register(), Bit(spe_.index()), kSignalTag);
}

Task<> Collectives::WaitForAll(std::uint32_t bits) {
  while ((pending_ & bits) != bits) {
    pending_ |= co_await spe_.ReadSignal(group_.signal_register());
  }
  pending_ &= ~bits;
}

// Which of the bits have come, as ranks.
Task<std::uint32_t> Collectives::WaitForAny(std::uint32_t bits) {
  while ((pending_ & bits) == 0) {
    pending_ |= co_await spe_.ReadSignal(group_.signal_register());
  }
  const std::uint32_t come = pending_ & bits;
  pending_ &= ~come;
  co_return come >> shift_;
}

// Alternating halves keep two calls apart only while all partners stay the same: after a broadcast
// or a reduction an SPE may be two calls ahead of an SPE with which it did not communicate. So
// before partners change, there is a barrier over the old tree.
Task<> Collectives::Settle(AlgorithmSpec next) {
  if (!last_rooted_ || next == last_) co_return;
  Begin(last_, /*linked=*/true);
  co_await TreeBarrier();
}

}  // namespace percs::cell
