// Collectives whose result every task gets.
#include <algorithm>

#include "emulator/collectives/schedules.h"

namespace percs {
namespace {

std::int32_t Index(std::uint32_t i) { return static_cast<std::int32_t>(i); }

// The 2^m tasks that exchange among themselves, and the others, each of which has one of them as
// partner.
struct Fold {
  explicit Fold(const PhaseSchedule& s)
      : core(PowerOfTwoUpTo(s.size)), extra(s.me >= core), served(s.me + core < s.size) {}
  const std::uint32_t core;
  const bool extra;   // not among the 2^m
  const bool served;  // its partner is not
};

Phase Exchange(std::uint32_t partner, const Piece& send, const Piece& receive, Phase::Take take) {
  return {Index(partner), Index(partner), send, receive, take};
}

}  // namespace

void PlanButterflyAllreduce(PhaseSchedule& s) {
  const Fold fold(s);
  const Piece sum{Buffer::kOutput, 0, s.bytes};
  s.before.push_back({{Buffer::kInput, 0, s.bytes}, sum});
  if (fold.core < s.size) {
    Phase& in = s.phases.emplace_back();
    if (fold.extra) in.to = Index(s.me - fold.core);
    if (fold.served) in.from = Index(s.me + fold.core);
    in.send = in.receive = sum;
    in.take = Phase::Take::kCombine;
  }
  for (std::uint32_t distance = 1; distance < fold.core; distance *= 2) {
    if (fold.extra) {
      s.phases.emplace_back();
    } else {
      s.phases.push_back(Exchange(s.me ^ distance, sum, sum, Phase::Take::kCombine));
    }
  }
  if (fold.core < s.size) {
    Phase& out = s.phases.emplace_back();
    if (fold.extra) out.from = Index(s.me - fold.core);
    if (fold.served) out.to = Index(s.me + fold.core);
    out.send = out.receive = sum;
  }
}

void PlanScan(PhaseSchedule& s) {
  const Piece sum{Buffer::kOutput, 0, s.bytes};
  s.before.push_back({{Buffer::kInput, 0, s.bytes}, sum});
  for (std::uint32_t distance = 1; distance < s.size; distance *= 2) {
    Phase& phase = s.phases.emplace_back();
    if (s.me + distance < s.size) phase.to = Index(s.me + distance);
    if (s.me >= distance) phase.from = Index(s.me - distance);
    phase.send = phase.receive = sum;
    phase.take = Phase::Take::kCombine;
  }
}

void PlanRingAllgather(PhaseSchedule& s) {
  const auto block = [&](std::uint32_t i) {
    return Piece{Buffer::kOutput, (i % s.size) * s.bytes, s.bytes};
  };
  s.before.push_back({{Buffer::kInput, 0, s.bytes}, block(s.me)});
  for (std::uint32_t i = 0; i + 1 < s.size; ++i) {
    s.phases.push_back({Index((s.me + 1) % s.size), Index((s.me + s.size - 1) % s.size),
                        block(s.me + s.size - i), block(s.me + 2 * s.size - i - 1)});
  }
}

// Blocks of the 2^m tasks and of their partners lie in two places, so each exchange is of both: as
// runs of `distance` blocks, `core` blocks apart.
void PlanRecursiveDoublingAllgather(PhaseSchedule& s) {
  const Fold fold(s);
  const std::uint64_t b = s.bytes;
  const std::uint32_t extras = s.size - fold.core;
  const Piece own{Buffer::kOutput, s.me * b, b};
  s.before.push_back({{Buffer::kInput, 0, b}, own});
  if (extras > 0) {
    Phase& in = s.phases.emplace_back();
    if (fold.extra) in.to = Index(s.me - fold.core);
    if (fold.served) in.from = Index(s.me + fold.core);
    in.send = own;
    in.receive = {Buffer::kOutput, (s.me + fold.core) * b, b};
  }
  // Those of tasks [first, first + n) of the 2^m, then those of their partners as far as there are
  // any.
  const auto blocks = [&](std::uint32_t first, std::uint32_t n) {
    const std::uint32_t partners = std::min(n, extras > first ? extras - first : 0);
    return Piece{Buffer::kOutput, first * b, (n + partners) * b, n * b, fold.core * b};
  };
  for (std::uint32_t distance = 1; distance < fold.core; distance *= 2) {
    if (fold.extra) {
      s.phases.emplace_back();
      continue;
    }
    const std::uint32_t partner = s.me ^ distance;
    s.phases.push_back(Exchange(partner, blocks(s.me & ~(distance - 1), distance),
                                blocks(partner & ~(distance - 1), distance), Phase::Take::kCopy));
  }
  if (extras > 0) {
    Phase& out = s.phases.emplace_back();
    if (fold.extra) out.from = Index(s.me - fold.core);
    if (fold.served) out.to = Index(s.me + fold.core);
    out.send = out.receive = {Buffer::kOutput, 0, s.size * b};
  }
}

// By distance ahead: scratch block i is that of task me + i.
void PlanBruckAllgather(PhaseSchedule& s) {
  const std::uint64_t b = s.bytes, all = s.size * b;
  s.scratch = all;
  s.before.push_back({{Buffer::kInput, 0, b}, {Buffer::kScratch, 0, b}});
  for (std::uint32_t distance = 1; distance < s.size; distance *= 2) {
    const std::uint64_t n = std::min(distance, s.size - distance) * b;
    s.phases.push_back({Index((s.me + s.size - distance) % s.size),
                        Index((s.me + distance) % s.size),
                        {Buffer::kScratch, 0, n},
                        {Buffer::kScratch, distance * b, n}});
  }
  const std::uint64_t low = s.me * b;
  s.after.push_back({{Buffer::kScratch, 0, all - low}, {Buffer::kOutput, low, all - low}});
  s.after.push_back({{Buffer::kScratch, all - low, low}, {Buffer::kOutput, 0, low}});
}

void PlanPairwiseAlltoall(PhaseSchedule& s) {
  const std::uint64_t b = s.bytes;
  s.before.push_back({{Buffer::kInput, s.me * b, b}, {Buffer::kOutput, s.me * b, b}});
  for (std::uint32_t i = 1; i < s.size; ++i) {
    const std::uint32_t to = (s.me + i) % s.size, from = (s.me + s.size - i) % s.size;
    s.phases.push_back(
        {Index(to), Index(from), {Buffer::kInput, to * b, b}, {Buffer::kOutput, from * b, b}});
  }
}

// Scratch block i is on its way to the task i ahead; phase k moves those with bit k of i set (Bruck
// et al., reference 9 of paper 003). The other half of scratch is where they come in.
void PlanBruckAlltoall(PhaseSchedule& s) {
  const std::uint64_t b = s.bytes, all = s.size * b, low = s.me * b;
  s.scratch = all;
  s.before.push_back({{Buffer::kInput, low, all - low}, {Buffer::kScratch, 0, all - low}});
  s.before.push_back({{Buffer::kInput, 0, low}, {Buffer::kScratch, all - low, low}});
  for (std::uint32_t distance = 1; distance < s.size; distance *= 2) {
    std::uint64_t blocks = 0;
    for (std::uint32_t i = distance; i < s.size; ++i) blocks += (i & distance) != 0;
    const Piece moved{Buffer::kScratch, distance * b, blocks * b, distance * b, 2 * distance * b};
    s.phases.push_back({Index((s.me + distance) % s.size),
                        Index((s.me + s.size - distance) % s.size), moved, moved});
  }
  // Block i now is from the task i behind.
  for (std::uint32_t i = 0; i < s.size; ++i) {
    s.after.push_back(
        {{Buffer::kScratch, i * b, b}, {Buffer::kOutput, ((s.me + s.size - i) % s.size) * b, b}});
  }
}

}  // namespace percs
