// Collectives as Open MPI's `tuned` component has them: which algorithm, and which segments, for
// which size of message and number of tasks. From its public source of 2008, release 1.3
// (ompi/mca/coll/tuned: coll_tuned_decision_fixed.c, coll_tuned_bcast.c, coll_tuned_reduce.c,
// coll_tuned_allreduce.c, coll_tuned_alltoall.c, coll_tuned_topo.c), the baseline of paper 002.
//
// A message's phase is the same number at both of its ends: its step through the tree or chain.
// What goes in segments, and reductions from several tasks, post the next receive before they wait
// for the one before.
#include <algorithm>
#include <bit>
#include <cmath>

#include "emulator/collectives/schedules.h"

namespace percs {
namespace {

std::int32_t Number(std::uint32_t i) { return static_cast<std::int32_t>(i); }

// Of a tree of fan-out 2, by number relative to the root: level l holds 2^l numbers.
int TreeLevel(std::uint32_t r) { return static_cast<int>(std::bit_width(r + 1)) - 1; }
std::uint32_t TreeChild(std::uint32_t r, std::uint32_t k) {
  return r + (k + 1) * (1u << TreeLevel(r));
}
std::uint32_t TreeParent(std::uint32_t r) {
  const int level = TreeLevel(r);
  const std::uint32_t step = 1u << (level - 1);
  return r - step <= 2 * step - 2 ? r - step : r - 2 * step;
}

// Makes sure that phase `number` is there.
Phase& PhaseAt(PhaseSchedule& s, std::size_t number) {
  if (s.phases.size() <= number) s.phases.resize(number + 1);
  return s.phases[number];
}

struct Half {
  std::uint64_t from = 0, bytes = 0;
  std::uint64_t segments(std::uint64_t segment) const { return (bytes + segment - 1) / segment; }
  Piece Segment(std::uint64_t i, std::uint64_t segment) const {
    return {Buffer::kOutput, from + i * segment, std::min(segment, bytes - i * segment)};
  }
};

// Each half goes in segments down one side of a binary tree; pairs of tasks then exchange halves.
void PlanSplitBinaryBroadcast(PhaseSchedule& s, std::uint64_t segment) {
  const std::uint32_t me = s.relative();
  const std::uint64_t first = s.bytes / 2;
  const Half halves[2] = {{0, first}, {first, s.bytes - first}};
  const auto side = [](std::uint32_t r) { return r % 2 == 1 ? 0 : 1; };  // of all but the root
  // Segment i reaches level l in phase 2 (l - 1 + i), or one later if it comes to a second child.
  const auto phase_of = [](std::uint32_t child, std::uint64_t i) {
    const bool second = child != TreeChild(TreeParent(child), 0);
    return 2 * (static_cast<std::uint64_t>(TreeLevel(child)) - 1 + i) + second;
  };
  for (std::uint32_t k = 0; k < 2; ++k) {
    const std::uint32_t child = TreeChild(me, k);
    if (child >= s.size) continue;
    const Half& half = halves[side(child)];
    for (std::uint64_t i = 0; i < half.segments(segment); ++i) {
      Phase& phase = PhaseAt(s, phase_of(child, i));
      phase.to = s.Absolute(child);
      phase.send = half.Segment(i, segment);
    }
  }
  if (me > 0) {
    const Half& half = halves[side(me)];
    for (std::uint64_t i = 0; i < half.segments(segment); ++i) {
      Phase& phase = PhaseAt(s, phase_of(me, i));
      phase.from = s.Absolute(TreeParent(me));
      phase.receive = half.Segment(i, segment);
      phase.posted_early = true;
    }
  }
  Phase& exchange =
      PhaseAt(s, 2 * (static_cast<std::uint64_t>(TreeLevel(s.size - 1)) +
                      std::max(halves[0].segments(segment), halves[1].segments(segment))));
  const auto whole = [&halves](int i) {
    return Piece{Buffer::kOutput, halves[i].from, halves[i].bytes};
  };
  const bool last_is_alone = s.size % 2 == 0;  // the root has the half that it lacks
  if (me == 0) {
    if (last_is_alone) exchange.to = s.Absolute(s.size - 1);
    exchange.send = whole(1);
    return;
  }
  const bool alone = last_is_alone && me == s.size - 1;
  const std::uint32_t partner = alone ? 0 : me % 2 == 1 ? me + 1 : me - 1;
  exchange.from = s.Absolute(partner);
  if (!alone) exchange.to = s.Absolute(partner);
  exchange.send = whole(side(me));
  exchange.receive = whole(1 - side(me));
}

// Segments from the root along a chain.
void PlanChainBroadcast(PhaseSchedule& s, std::uint64_t segment) {
  const std::uint32_t me = s.relative();
  const Half all{0, s.bytes};
  for (std::uint64_t i = 0; i < all.segments(segment); ++i) {
    if (me + 1 < s.size) {
      Phase& phase = PhaseAt(s, me + i);
      phase.to = s.Absolute(me + 1);
      phase.send = all.Segment(i, segment);
    }
    if (me > 0) {
      Phase& phase = PhaseAt(s, me - 1 + i);
      phase.from = s.Absolute(me - 1);
      phase.receive = all.Segment(i, segment);
      phase.posted_early = true;
    }
  }
}

// Where a task of a reduction has its sum and its send data: its own input if it received nothing.
Buffer SumOf(const PhaseSchedule& s) { return s.at_root() ? Buffer::kOutput : Buffer::kScratch; }

// Segments along a chain towards the root, combined on the way.
void PlanChainReduce(PhaseSchedule& s, std::uint64_t segment) {
  const std::uint32_t me = s.relative(), behind = s.size - 1 - me;
  if (!s.at_root() && behind > 0) s.scratch = s.bytes;
  const Half all{0, s.bytes};
  const auto piece = [&](std::uint64_t i, Buffer buffer) {
    Piece part = all.Segment(i, segment);
    part.buffer = buffer;
    return part;
  };
  for (std::uint64_t i = 0; i < all.segments(segment); ++i) {
    if (me > 0) {
      Phase& phase = PhaseAt(s, behind + i);
      phase.to = s.Absolute(me - 1);
      phase.send = piece(i, behind > 0 ? SumOf(s) : Buffer::kInput);
    }
    if (behind > 0) {
      Phase& phase = PhaseAt(s, behind - 1 + i);
      phase.from = s.Absolute(me + 1);
      phase.receive = piece(i, SumOf(s));
      phase.take = Phase::Take::kCombineWithInput;
      phase.posted_early = true;
    }
  }
}

// Segments up a tree of fan-out 2. Counted from the leaves, segment i leaves level l in phase
// 2 (l + i), or one later if it is a second child's.
void PlanBinaryReduce(PhaseSchedule& s, std::uint64_t segment) {
  const std::uint32_t me = s.relative();
  const auto phase_of = [top = TreeLevel(s.size - 1)](std::uint32_t child, std::uint64_t i) {
    const bool second = child != TreeChild(TreeParent(child), 0);
    return 2 * (static_cast<std::uint64_t>(top - TreeLevel(child)) + i) + second;
  };
  const bool leaf = TreeChild(me, 0) >= s.size;
  if (!s.at_root() && !leaf) s.scratch = s.bytes;
  const Half all{0, s.bytes};
  for (std::uint64_t i = 0; i < all.segments(segment); ++i) {
    Piece part = all.Segment(i, segment);
    for (std::uint32_t k = 0; k < 2; ++k) {
      const std::uint32_t child = TreeChild(me, k);
      if (child >= s.size) continue;
      Phase& phase = PhaseAt(s, phase_of(child, i));
      phase.from = s.Absolute(child);
      phase.receive = part;
      phase.receive.buffer = SumOf(s);
      phase.take = k == 0 ? Phase::Take::kCombineWithInput : Phase::Take::kCombine;
      phase.posted_early = true;
    }
    if (me == 0) continue;
    Phase& phase = PhaseAt(s, phase_of(me, i));
    phase.to = s.Absolute(TreeParent(me));
    part.buffer = leaf ? Buffer::kInput : SumOf(s);
    phase.send = part;
  }
}

void PlanWholeBinomialReduce(PhaseSchedule& s) {
  const std::uint32_t me = s.relative();
  bool came = false;
  for (std::uint32_t distance = 1; distance < s.size; distance *= 2) {
    const std::uint32_t mask = 2 * distance - 1;
    Phase& phase = s.phases.emplace_back();
    if ((me & mask) == distance) phase.to = s.Absolute(me - distance);
    if ((me & mask) == 0 && me + distance < s.size) phase.from = s.Absolute(me + distance);
    phase.send = {came ? SumOf(s) : Buffer::kInput, 0, s.bytes};
    phase.receive = {SumOf(s), 0, s.bytes};
    phase.take = came ? Phase::Take::kCombine : Phase::Take::kCombineWithInput;
    phase.posted_early = true;
    if (phase.to != Phase::kNobody) break;  // its part is done
    came = came || phase.from != Phase::kNobody;
  }
  if (came && !s.at_root()) s.scratch = s.bytes;
}

// The root takes the data of one task after the other.
void PlanLinearReduce(PhaseSchedule& s) {
  const std::uint32_t me = s.relative();
  for (std::uint32_t from = 1; from < s.size; ++from) {
    if (me != 0 && me != from) continue;
    Phase& phase = PhaseAt(s, from - 1);
    (me == 0 ? phase.from : phase.to) = s.Absolute(me == 0 ? from : 0);
    phase.send = {Buffer::kInput, 0, s.bytes};
    phase.receive = {Buffer::kOutput, 0, s.bytes};
    phase.take = from == 1 ? Phase::Take::kCombineWithInput : Phase::Take::kCombine;
  }
}

// Every task sums up one block while the blocks go round; then the sums go round.
void PlanRingAllreduce(PhaseSchedule& s) {
  constexpr std::uint64_t kOperandMax = 16;  // blocks end between operands of every type
  s.before.push_back({{Buffer::kInput, 0, s.bytes}, {Buffer::kOutput, 0, s.bytes}});
  const std::uint64_t units = (s.bytes + kOperandMax - 1) / kOperandMax;
  const auto block = [&](std::uint32_t i) {
    const std::uint64_t n = i % s.size;
    const std::uint64_t from = units * n / s.size * kOperandMax;
    return Piece{Buffer::kOutput, from,
                 std::min(units * (n + 1) / s.size * kOperandMax, s.bytes) - from};
  };
  const std::int32_t to = Number((s.me + 1) % s.size);
  const std::int32_t from = Number((s.me + s.size - 1) % s.size);
  for (std::uint32_t i = 0; i + 1 < s.size; ++i) {
    s.phases.push_back({to, from, block(s.me + s.size - i), block(s.me + 2 * s.size - i - 1),
                        Phase::Take::kCombine, true});
  }
  for (std::uint32_t i = 0; i + 1 < s.size; ++i) {
    s.phases.push_back(
        {to, from, block(s.me + 1 + s.size - i), block(s.me + 2 * s.size - i), Phase::Take::kCopy});
  }
}

}  // namespace

void PlanOpenMpiBroadcast(PhaseSchedule& s) {
  const auto bytes = static_cast<double>(s.bytes);
  const double size = s.size;
  if (s.size < 2) return;
  if (s.bytes < 2048) return PlanBinomialBroadcast(s);
  if (s.bytes < 370'728) return PlanSplitBinaryBroadcast(s, 1024);
  if (size < 1.6134e-6 * bytes + 2.1102) return PlanChainBroadcast(s, 128 * 1024);
  if (s.size < 13) return PlanSplitBinaryBroadcast(s, 8 * 1024);
  if (size < 2.3679e-6 * bytes + 1.1787) return PlanChainBroadcast(s, 64 * 1024);
  PlanChainBroadcast(s, size < 3.2118e-6 * bytes + 8.7936 ? 16 * 1024 : 8 * 1024);
}

// Its binomial tree for more than seven tasks has segments of 1 KB, here whole messages.
void PlanOpenMpiReduce(PhaseSchedule& s) {
  const double kib = static_cast<double>(s.bytes) / 1024, size = s.size;
  if (s.size == 1) {
    s.before.push_back({{Buffer::kInput, 0, s.bytes}, {Buffer::kOutput, 0, s.bytes}});
    return;
  }
  if (s.size < 8 && s.bytes < 512) return PlanLinearReduce(s);
  if ((s.size < 8 && s.bytes < 20'480) || s.bytes < 2048 || size > 0.6016 * kib + 1.3496)
    return PlanWholeBinomialReduce(s);
  if (size > 0.0410 * kib + 9.7128) return PlanChainReduce(s, 1024);
  if (size > 0.0422 * kib + 1.1614) return PlanBinaryReduce(s, 32 * 1024);
  PlanChainReduce(s, size > 0.0033 * kib + 1.6761 ? 32 * 1024 : 64 * 1024);
}

void PlanOpenMpiAllreduce(PhaseSchedule& s) {
  if (s.bytes < 10'000) return PlanButterflyAllreduce(s);
  PlanRingAllreduce(s);
}

// Below 3,000 bytes it posts all messages at once.
void PlanOpenMpiAlltoall(PhaseSchedule& s) {
  if (s.bytes < 200 && s.size > 12) return PlanBruckAlltoall(s);
  PlanPairwiseAlltoall(s);
  s.at_once = s.bytes < 3000;
}

}  // namespace percs
