// Barrier, and collectives with a root: trees.
#include <algorithm>

#include "emulator/collectives/schedules.h"

namespace percs {
namespace {

// Blocks of the binomial subtree below relative number r, whose distance to its parent is
// `distance`.
std::uint64_t SubtreeBlocks(const PhaseSchedule& s, std::uint32_t r, std::uint32_t distance) {
  return std::min(distance, s.size - r);
}

// Blocks by relative number in scratch <-> blocks by index in `buffer`.
void Rotate(const PhaseSchedule& s, Buffer buffer, bool into_scratch,
            std::vector<LocalCopy>& copies) {
  const std::uint64_t low = static_cast<std::uint64_t>(s.root) * s.bytes;
  const std::uint64_t high = static_cast<std::uint64_t>(s.size) * s.bytes - low;
  const LocalCopy parts[] = {{{buffer, low, high}, {Buffer::kScratch, 0, high}},
                             {{buffer, 0, low}, {Buffer::kScratch, high, low}}};
  for (const LocalCopy& part : parts) {
    copies.push_back(into_scratch ? part : LocalCopy{part.into, part.from});
  }
}

}  // namespace

void PlanDissemination(PhaseSchedule& s) {
  for (std::uint32_t distance = 1; distance < s.size; distance *= 2) {
    Phase& phase = s.phases.emplace_back();
    phase.to = static_cast<std::int32_t>((s.me + distance) % s.size);
    phase.from = static_cast<std::int32_t>((s.me + s.size - distance) % s.size);
  }
}

void PlanBinomialBroadcast(PhaseSchedule& s) {
  const int phases = CeilLog2(s.size);
  const std::uint32_t me = s.relative();
  const Piece data{Buffer::kOutput, 0, s.bytes};
  for (int i = 0; i < phases; ++i) {
    const std::uint32_t distance = 1u << (phases - 1 - i);
    const std::uint32_t mask = 2 * distance - 1;
    Phase& phase = s.phases.emplace_back();
    if ((me & mask) == 0 && me + distance < s.size) phase.to = s.Absolute(me + distance);
    if ((me & mask) == distance) phase.from = s.Absolute(me - distance);
    phase.send = phase.receive = data;
  }
}

void PlanBarrierBinomialBroadcast(PhaseSchedule& s) {
  PlanDissemination(s);
  PlanBinomialBroadcast(s);
}

void PlanBinomialReduce(PhaseSchedule& s) {
  const std::uint32_t me = s.relative();
  const Buffer sum = s.at_root() ? Buffer::kOutput : Buffer::kScratch;
  if (!s.at_root()) s.scratch = s.bytes;
  s.before.push_back({{Buffer::kInput, 0, s.bytes}, {sum, 0, s.bytes}});
  for (std::uint32_t distance = 1; distance < s.size; distance *= 2) {
    const std::uint32_t mask = 2 * distance - 1;
    Phase& phase = s.phases.emplace_back();
    if ((me & mask) == distance) phase.to = s.Absolute(me - distance);
    if ((me & mask) == 0 && me + distance < s.size) phase.from = s.Absolute(me + distance);
    phase.send = phase.receive = {sum, 0, s.bytes};
    phase.take = Phase::Take::kCombine;
    if (phase.to != Phase::kNobody) break;  // its part is done
  }
}

void PlanBinomialGather(PhaseSchedule& s) {
  const std::uint32_t me = s.relative();
  s.scratch = s.size * s.bytes;
  s.before.push_back({{Buffer::kInput, 0, s.bytes}, {Buffer::kScratch, me * s.bytes, s.bytes}});
  for (std::uint32_t distance = 1; distance < s.size; distance *= 2) {
    const std::uint32_t mask = 2 * distance - 1;
    Phase& phase = s.phases.emplace_back();
    if ((me & mask) == distance) {
      phase.to = s.Absolute(me - distance);
      phase.send = {Buffer::kScratch, me * s.bytes, SubtreeBlocks(s, me, distance) * s.bytes};
      break;
    }
    if (me + distance < s.size) {
      phase.from = s.Absolute(me + distance);
      phase.receive = {Buffer::kScratch, (me + distance) * s.bytes,
                       SubtreeBlocks(s, me + distance, distance) * s.bytes};
    }
  }
  if (s.at_root()) Rotate(s, Buffer::kOutput, false, s.after);
}

void PlanBinomialScatter(PhaseSchedule& s) {
  const std::uint32_t me = s.relative();
  s.scratch = s.size * s.bytes;
  if (s.at_root()) Rotate(s, Buffer::kInput, true, s.before);
  for (int i = CeilLog2(s.size) - 1; i >= 0; --i) {
    const std::uint32_t distance = 1u << i, mask = 2 * distance - 1;
    Phase& phase = s.phases.emplace_back();
    if ((me & mask) == distance) {
      phase.from = s.Absolute(me - distance);
      phase.receive = {Buffer::kScratch, me * s.bytes, SubtreeBlocks(s, me, distance) * s.bytes};
    } else if ((me & mask) == 0 && me + distance < s.size) {
      phase.to = s.Absolute(me + distance);
      phase.send = {Buffer::kScratch, (me + distance) * s.bytes,
                    SubtreeBlocks(s, me + distance, distance) * s.bytes};
    }
  }
  s.after.push_back({{Buffer::kScratch, me * s.bytes, s.bytes}, {Buffer::kOutput, 0, s.bytes}});
}

}  // namespace percs
