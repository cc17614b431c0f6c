// percsctl collective --blade: one collective among the SPEs of a Cell blade in its measurement
// loop.
#include <fmt/format.h>

#include <iterator>
#include <nlohmann/json.hpp>

#include "client/percsctl/collective.h"
#include "client/percsctl/command.h"
#include "client/percsctl/format.h"
#include "emulator/cell/collectives/measure.h"
#include "emulator/experiments/collective_measure.h"

namespace percs {
namespace {

using Json = nlohmann::json;

constexpr cell::Collective kOfBlades[] = {cell::Collective::kBarrier, cell::Collective::kBroadcast,
                                          cell::Collective::kReduce};

void Print(const CollectiveArguments& a, std::uint32_t bytes, const cell::CollectiveLoop& loop,
           const cell::AlgorithmSpec& ran, const cell::CollectiveTiming& timing) {
  const std::string name = cell::NameOf(loop.collective, ran);
  const bool broadcast = loop.collective == cell::Collective::kBroadcast;
  if (IsJson(a.format)) {
    Json one{{"operation", std::string(OperationName(a.operation))},
             {"algorithm", name},
             {"blade", a.blade},
             {"spes", a.spes},
             {"iterations", loop.iterations},
             {"loop", a.loop},
             {"nanoseconds", timing.nanoseconds},
             {"wrong", timing.wrong},
             {"operations", timing.blade.stats.operations},
             {"digest", timing.blade.digest.ToString()}};
    if (broadcast) {
      one["bytes"] = bytes;
      one["gigabytes_per_second"] = timing.gigabytes_per_second;
    }
    if (loop.collective == cell::Collective::kReduce) one["elements"] = a.elements;
    fmt::print("{}\n", one.dump(2));
    return;
  }
  fmt::print("{} on {} of a {}\n", name, Counted(static_cast<std::uint64_t>(a.spes), "SPE"),
             a.blade);
  fmt::print("  per call   {:.1f} ns virtual, {} calls {}\n", timing.nanoseconds,
             FormatCount(loop.iterations), a.loop);
  if (broadcast) {
    fmt::print("  bandwidth  {:.2f} GB/s, of {} to {}\n", timing.gigabytes_per_second,
               Counted(bytes, "byte"), Counted(static_cast<std::uint64_t>(a.spes) - 1, "SPE"));
  }
  fmt::print("  data       {}\n", timing.wrong == 0 ? "correct after every call"
                                                    : fmt::format("wrong {} times", timing.wrong));
  fmt::print("  digest     {}\n", timing.blade.digest.ToString());
}

}  // namespace

Outcome MeasureOnBlade(const CollectiveArguments& a) {
  const auto operation = static_cast<std::size_t>(a.operation);
  if (operation >= std::size(kOfBlades)) {
    return Outcome::Fail(ExitCode::kUsage,
                         "on a blade the collectives are barrier, broadcast and reduce");
  }
  if (a.sizes.size() > 1) return Outcome::Fail(ExitCode::kUsage, "on a blade, give one size");
  const auto parameters = cell::ParametersOfBlade(a.blade);
  if (!parameters.ok()) return FromStatus(parameters.status());
  cell::CollectiveLoop loop;
  loop.collective = kOfBlades[operation];
  const auto spec =
      cell::AlgorithmNamed(loop.collective, a.algorithm.empty() ? "auto" : a.algorithm);
  if (!spec.ok()) return FromStatus(spec.status());
  loop.spec = *spec;
  loop.spes = a.spes;
  if (!a.sizes.empty()) {
    if (a.sizes.front() > cell::kCollectiveBufferBytes) {
      return Outcome::Fail(ExitCode::kUsage,
                           fmt::format("{} bytes: the buffer of an SPE holds {}", a.sizes.front(),
                                       cell::kCollectiveBufferBytes));
    }
    loop.bytes = static_cast<std::uint32_t>(a.sizes.front());
  }
  loop.elements = a.elements;
  loop.mode = a.loop == "aligned" ? cell::LoopMode::kAligned : cell::LoopMode::kBackToBack;
  SettlingCalls settling;
  auto timing = absl::StatusOr<cell::CollectiveTiming>(absl::InternalError("not measured"));
  do {
    loop.iterations = a.iterations > 0 ? a.iterations : settling.calls();
    timing = cell::MeasureCollective(*parameters, loop);
  } while (timing.ok() && a.iterations == 0 && !settling.Settled(timing->nanoseconds));
  if (!timing.ok()) return FromStatus(timing.status());
  cell::AlgorithmSpec ran = *spec;
  if (ran.algorithm == cell::Algorithm::kAuto) {
    const bool reduce = loop.collective == cell::Collective::kReduce;
    ran = cell::BestAlgorithm(loop.collective, a.spes, reduce ? 4 * a.elements : loop.bytes);
  }
  Print(a, loop.bytes, loop, ran, *timing);
  if (timing->wrong != 0) {
    return Outcome::Fail(ExitCode::kViolation,
                         fmt::format("{} gave wrong data", Counted(timing->wrong, "call")));
  }
  return Outcome::Ok();
}

}  // namespace percs
