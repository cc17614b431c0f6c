#include "emulator/cell/collectives/measure.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "absl/strings/str_join.h"
#include "emulator/base/random.h"
#include "fmt/format.h"

namespace percs::cell {
namespace {

constexpr LsAddress kVector = 0x20000;
constexpr Time kSlot = 200 * kMicrosecond;  // of an aligned call, with delays: more than any takes

// Small whole numbers: their sums are exact in float, whatever the order.
std::int32_t Element(std::uint64_t call, int rank, std::uint32_t i) {
  return static_cast<std::int32_t>(Mix64(call * 64 + static_cast<std::uint64_t>(rank) * 8191 + i) %
                                   2001) -
         1000;
}
std::uint8_t MessageByte(std::uint64_t call, std::uint32_t i) {
  return static_cast<std::uint8_t>(call * 131 + i * 7 + (i >> 8));
}

void Prepare(const RunningLoop& m, Spe& spe, std::uint64_t call) {
  const CollectiveLoop& loop = *m.loop;
  // A call that will be refused may not fit the local store.
  if (loop.collective == Collective::kBroadcast && loop.bytes <= kCollectiveBufferBytes) {
    std::uint8_t* const to = spe.local_store().at(m.group.buffer());
    for (std::uint32_t i = 0; i < loop.bytes; ++i) {
      to[i] = spe.index() == 0 ? MessageByte(call, i) : 0;
    }
  } else if (loop.collective == Collective::kReduce && loop.elements <= kTreeElementsMax) {
    for (std::uint32_t i = 0; i < loop.elements; ++i) {
      const std::int32_t e = Element(call, spe.index(), i);
      if (loop.type == ReduceType::kInt) {
        spe.local_store().Store(kVector + 4 * i, e);
      } else {
        spe.local_store().Store(kVector + 4 * i, static_cast<float>(e));
      }
    }
  }
}

std::int32_t Reference(const CollectiveLoop& loop, std::uint64_t call, std::uint32_t i) {
  std::int32_t value = Element(call, 0, i);
  for (int rank = 1; rank < loop.spes; ++rank) {
    const std::int32_t e = Element(call, rank, i);
    value = loop.op == ReduceOp::kAdd   ? value + e
            : loop.op == ReduceOp::kMin ? std::min(value, e)
                                        : std::max(value, e);
  }
  return value;
}

bool Right(const RunningLoop& m, Spe& spe, std::uint64_t call) {
  const CollectiveLoop& loop = *m.loop;
  switch (loop.collective) {
    case Collective::kBarrier:
      // No SPE may leave before the last one has entered.
      return std::all_of(m.calls.begin(), m.calls.end(),
                         [call](std::uint64_t c) { return c > call; });
    case Collective::kBroadcast: {
      const std::uint8_t* const got = spe.local_store().at(m.group.buffer());
      for (std::uint32_t i = 0; i < loop.bytes; ++i) {
        if (got[i] != MessageByte(call, i)) return false;
      }
      return true;
    }
    case Collective::kReduce:
      break;
  }
  if (spe.index() != 0) return true;
  for (std::uint32_t i = 0; i < loop.elements; ++i) {
    const std::int32_t right = Reference(loop, call, i);
    const bool same =
        loop.type == ReduceType::kInt
            ? spe.local_store().Load<std::int32_t>(kVector + 4 * i) == right
            : spe.local_store().Load<float>(kVector + 4 * i) == static_cast<float>(right);
    if (!same) return false;
  }
  return true;
}

absl::Status Outcome(const RunningLoop& m, const BladeResult& result) {
  if (!result.status.ok()) return result.status;
  if (!result.blocked.empty()) {
    return absl::FailedPreconditionError("programs are deadlocked: " +
                                         absl::StrJoin(result.blocked, "; "));
  }
  if (m.loop->mode == LoopMode::kAligned && m.longest >= kSlot) {
    return absl::OutOfRangeError(fmt::format(
        "a call took {} ps, more than the {} ps between two aligned calls", m.longest, kSlot));
  }
  return absl::OkStatus();
}

}  // namespace

Task<> RunLoop(Spe& spe, RunningLoop* m) {
  const CollectiveLoop& loop = *m->loop;
  const int rank = spe.index();
  Collectives group(spe, m->group);
  RandomStream delays(loop.seed, fmt::format("spe{}/delay", rank));
  for (std::uint64_t call = 0; call < loop.iterations; ++call) {
    const Time start = static_cast<Time>(call) * kSlot;
    if (loop.mode == LoopMode::kAligned) co_await spe.SleepUntil(start);
    if (loop.delay_max > 0) {
      spe.Compute(delays.Below(static_cast<std::uint32_t>(loop.delay_max)));
      co_await spe.Sync();
    }
    Prepare(*m, spe, call);
    m->calls[rank] = call + 1;
    switch (loop.collective) {
      case Collective::kBarrier:
        co_await group.Barrier(loop.spec);
        break;
      case Collective::kBroadcast:
        co_await group.Broadcast(loop.bytes, loop.spec);
        break;
      case Collective::kReduce:
        co_await group.Reduce(kVector, loop.elements, loop.op, loop.type, loop.spec);
        break;
    }
    if (!Right(*m, spe, call)) ++m->wrong;
    // An SPE that has nobody to wait for: the other calls take no time either, up to 10^9 of them.
    if (loop.spes == 1 && loop.mode == LoopMode::kBackToBack && loop.delay_max == 0) {
      m->calls[rank] = loop.iterations;
      co_return;
    }
    if (loop.mode == LoopMode::kAligned) m->longest = std::max(m->longest, spe.time() - start);
  }
}

absl::StatusOr<CollectiveTiming> MeasureCollective(const BladeParameters& parameters,
                                                   const CollectiveLoop& loop) {
  absl::StatusOr<CollectiveGroup> group = CollectiveGroup::Create(loop.spes);
  if (!group.ok()) return group.status();
  if (loop.iterations == 0) return absl::InvalidArgumentError("a loop of 0 iterations; at least 1");
  absl::StatusOr<std::unique_ptr<Blade>> blade = Blade::Create(parameters);
  if (!blade.ok()) return blade.status();
  RunningLoop m{&loop, *group, std::vector<std::uint64_t>(loop.spes), 0, 0};
  for (int rank = 0; rank < loop.spes; ++rank) {
    const absl::Status s = (*blade)->RunSpe(rank, [&m](Spe& spe) { return RunLoop(spe, &m); });
    if (!s.ok()) return s;
  }
  (*blade)->Run(kNever);
  CollectiveTiming timing;
  timing.blade = (*blade)->Result();
  if (absl::Status s = Outcome(m, timing.blade); !s.ok()) return s;
  Time end = 0;
  for (int rank = 0; rank < loop.spes; ++rank) end = std::max(end, (*blade)->spe(rank).time());
  timing.nanoseconds = loop.mode == LoopMode::kAligned
                           ? static_cast<double>(m.longest) / 1000
                           : static_cast<double>(end) / 1000 / static_cast<double>(loop.iterations);
  if (loop.collective == Collective::kBroadcast && timing.nanoseconds > 0) {
    timing.gigabytes_per_second =
        static_cast<double>(loop.bytes) * (loop.spes - 1) / timing.nanoseconds;
  }
  timing.wrong = m.wrong;
  return timing;
}

}  // namespace percs::cell
