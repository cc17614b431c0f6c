// A trace of random operations, for replay.
#pragma once

#include <algorithm>
#include <cstdint>

#include "emulator/base/random.h"
#include "emulator/scenario/scenario.h"

namespace percs::test {

// Operations depend on earlier ones only. With a tag of its own for each message it always ends;
// with few tags a receive may take the message that another one needs, and the trace stand still.
inline TraceWorkload RandomTrace(RandomStream& random, std::uint32_t ranks, std::uint32_t steps,
                                 std::uint32_t tags) {
  TraceWorkload w;
  w.trace.ranks.resize(ranks);
  const auto add = [&](std::uint32_t rank, GoalOp::Kind kind, std::uint32_t peer,
                       std::uint32_t tag) {
    auto& ops = w.trace.ranks[rank];
    const std::uint32_t id = static_cast<std::uint32_t>(ops.size());
    GoalOp& op = ops.emplace_back();
    op.kind = kind;
    op.peer = peer;
    op.tag = tag;
    op.size = random.Below(3) == 0 ? 0 : random.Below(500);
    for (std::uint32_t i = random.Below(3); id > 0 && i > 0; --i) {
      GoalOp& earlier = ops[id - 1 - random.Below(std::min(id, 4u))];
      (random.Below(4) == 0 ? earlier.after_start : earlier.after_finish).push_back(id);
      ++ops[id].dependencies;
    }
  };
  for (std::uint32_t i = 0; i < steps; ++i) {
    const std::uint32_t a = random.Below(ranks), b = (a + 1 + random.Below(ranks - 1)) % ranks;
    if (random.Below(3) == 0) {
      add(a, GoalOp::Kind::kCalc, 0, 0);
    } else {
      const std::uint32_t tag = i % tags;
      add(a, GoalOp::Kind::kSend, b, tag);
      add(b, GoalOp::Kind::kRecv, a, tag);
    }
  }
  return w;
}

}  // namespace percs::test
