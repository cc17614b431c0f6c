// percsctl collective: one collective of a Cell blade in its measurement loop.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "client/percsctl/command.h"
#include "client/percsctl/format.h"
#include "emulator/cell/collectives/measure.h"

namespace percs {
namespace {

using Json = nlohmann::json;

struct CollectiveArguments {
  std::string operation, blade = "QS20", algorithm = "auto", loop = "back-to-back", format;
  int spes = cell::kSpes;
  std::uint32_t bytes = 128, elements = 32;
  std::uint64_t iterations = 1000;
};

constexpr const char* kOperations[] = {"barrier", "broadcast", "reduce"};

cell::Collective OperationOf(const std::string& name) {
  return name == kOperations[0]   ? cell::Collective::kBarrier
         : name == kOperations[1] ? cell::Collective::kBroadcast
                                  : cell::Collective::kReduce;
}

void Print(const CollectiveArguments& a, const cell::CollectiveLoop& loop,
           const cell::AlgorithmSpec& ran, const cell::CollectiveTiming& timing) {
  const std::string name = cell::NameOf(loop.collective, ran);
  const bool broadcast = loop.collective == cell::Collective::kBroadcast;
  if (IsJson(a.format)) {
    Json one{{"operation", a.operation},   {"algorithm", name},
             {"blade", a.blade},           {"spes", a.spes},
             {"iterations", a.iterations}, {"loop", a.loop},
             {"nanoseconds", timing.nanoseconds}, {"wrong", timing.wrong},
             {"operations", timing.blade.stats.operations},
             {"digest", timing.blade.digest.ToString()}};
    if (broadcast) {
      one["bytes"] = a.bytes;
      one["gigabytes_per_second"] = timing.gigabytes_per_second;
    }
    if (loop.collective == cell::Collective::kReduce) one["elements"] = a.elements;
    fmt::print("{}\n", one.dump(2));
    return;
  }
  fmt::print("{} on {} SPEs of a {}\n", name, a.spes, a.blade);
  fmt::print("  per call   {:.1f} ns virtual, {} calls {}\n", timing.nanoseconds,
             FormatCount(a.iterations), a.loop);
  if (broadcast) {
    fmt::print("  bandwidth  {:.2f} GB/s, of {} bytes to {} SPEs\n", timing.gigabytes_per_second, a.bytes,
               a.spes - 1);
  }
  fmt::print("  data       {}\n", timing.wrong == 0 ? "right after every call"
                                                    : fmt::format("wrong {} times", timing.wrong));
  fmt::print("  digest     {}\n", timing.blade.digest.ToString());
}

Outcome Collective(const CollectiveArguments& a) {
  const auto parameters = cell::ParametersOfBlade(a.blade);
  if (!parameters.ok()) return FromStatus(parameters.status());
  cell::CollectiveLoop loop;
  loop.collective = OperationOf(a.operation);
  const auto spec = cell::AlgorithmNamed(loop.collective, a.algorithm);
  if (!spec.ok()) return FromStatus(spec.status());
  loop.spec = *spec;
  loop.spes = a.spes;
  loop.bytes = a.bytes;
  loop.elements = a.elements;
  loop.iterations = a.iterations;
  loop.mode = a.loop == "aligned" ? cell::LoopMode::kAligned : cell::LoopMode::kBackToBack;
  const auto timing = cell::MeasureCollective(*parameters, loop);
  if (!timing.ok()) return FromStatus(timing.status());
  cell::AlgorithmSpec ran = *spec;
  if (ran.algorithm == cell::Algorithm::kAuto) {
    const bool reduce = loop.collective == cell::Collective::kReduce;
    ran = cell::BestAlgorithm(loop.collective, a.spes, reduce ? 4 * a.elements : a.bytes);
  }
  Print(a, loop, ran, *timing);
  if (timing->wrong != 0) {
    return Outcome::Fail(ExitCode::kViolation, fmt::format("{} calls gave wrong data", timing->wrong));
  }
  return Outcome::Ok();
}

}  // namespace

CommandBody AddCollective(CLI::App& app) {
  auto a = std::make_shared<CollectiveArguments>();
  app.add_option("OPERATION", a->operation, "barrier, broadcast or reduce")
      ->required()
      ->check(CLI::IsMember({kOperations[0], kOperations[1], kOperations[2]}));
  app.add_option("--blade", a->blade, "Blade type: QS20, QS21 or QS22")->capture_default_str();
  app.add_option("--algorithm", a->algorithm, "As the paper names it (\"TTBarB D3\"), or auto")
      ->capture_default_str();
  app.add_option("--spes", a->spes, "SPEs 0 to this number - 1 take part")->capture_default_str();
  app.add_option("--bytes", a->bytes, "Of a broadcast, at most 16384")->capture_default_str();
  app.add_option("--elements", a->elements, "Floats of a reduction, at most 512 (ATO) or 2048 (TT)")
      ->capture_default_str();
  app.add_option("--iterations", a->iterations, "Calls in the loop")->capture_default_str();
  app.add_option("--loop", a->loop,
                 "back-to-back: time per call; aligned: all enter at once, until the last leaves")
      ->check(CLI::IsMember({"back-to-back", "aligned"}))
      ->capture_default_str();
  AddFormatOption(app, a->format);
  return [a] { return Collective(*a); };
}

}  // namespace percs
