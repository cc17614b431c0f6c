// percsctl collective --every-root: each fixed root beside a root that moves from call to call.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "client/lib/interrupt.h"
#include "client/percsctl/collective.h"
#include "client/percsctl/command.h"
#include "client/percsctl/format.h"
#include "client/percsctl/progress.h"
#include "emulator/experiments/collective_measure.h"

namespace percs {
namespace {

using Json = nlohmann::json;

// As many calls as `percsctl validate p7ih` measures.
constexpr std::uint64_t kCalls = 40;

bool HasRoot(Operation operation) {
  return operation == Operation::kBroadcast || operation == Operation::kReduce ||
         operation == Operation::kGather || operation == Operation::kScatter;
}

// Means of a call in us: of a rotating root, then of each fixed one. All take about the same time.
absl::StatusOr<std::vector<double>> Means(CollectiveWorkload w, MeasurementsProgress& progress) {
  std::string what;
  RunOptions options;
  options.progress = [&](const RunProgress& p) { progress.Show(what, p.now); };
  options.cancelled = [] { return InterruptGuard::raised(); };
  std::vector<double> means;
  const std::uint32_t tasks = w.placement.tasks();
  for (std::uint32_t i = 0; i <= tasks; ++i) {
    w.rotate_root = i == 0;
    w.root = i == 0 ? 0 : i - 1;
    what = i == 0 ? "rotating root" : fmt::format("root {} of {}", w.root, tasks);
    const auto run = MeasureCollective(w, options);
    if (!run.ok()) return run.status();
    means.push_back(run->collective.Nanoseconds() / 1000);
    progress.NextMeasurement();
    progress.StartRound(static_cast<double>(run->virtual_time));
  }
  return means;
}

void Print(const CollectiveArguments& a, double rotating, const std::vector<double>& fixed) {
  if (IsJson(a.format)) {
    fmt::print("{}\n", Json{{"operation", std::string(OperationName(a.operation))},
                            {"algorithm", a.algorithm},
                            {"rotating_us", rotating},
                            {"fixed_us", fixed}}
                           .dump(2));
    return;
  }
  Table table({"root", "mean us", "rotating root is slower by %"}, "r");
  for (std::size_t root = 0; root < fixed.size(); ++root) {
    table.Add({std::to_string(root), fmt::format("{:.3f}", fixed[root]),
               fmt::format("{:.1f}", 100 * (rotating / fixed[root] - 1))});
  }
  table.Add({"rotating", fmt::format("{:.3f}", rotating), "-"});
  fmt::print("{}", table.ToString());
}

}  // namespace

Outcome MeasureEveryRoot(const CollectiveArguments& a) {
  if (!HasRoot(a.operation))
    return Outcome::Fail(ExitCode::kUsage,
                         fmt::format("{} has no root", OperationName(a.operation)));
  if (a.sizes.size() > 1 || !(IsJson(a.format) || a.format == "table"))
    return Outcome::Fail(ExitCode::kUsage, "--every-root prints one size, as table or json");
  CollectiveWorkload w = a.tasks;
  w.operation = a.operation;
  w.algorithm = a.algorithm;
  if (!a.sizes.empty()) w.bytes = a.sizes.front();
  w.iterations = a.iterations > 0 ? a.iterations : kCalls;
  const auto scenario = CollectiveScenario(w);
  if (!scenario.ok()) return FromStatus(scenario.status());
  if (absl::Status s = CheckCollectiveWorkload(w, w.placement.nodes); !s.ok()) return FromStatus(s);
  InterruptGuard interrupt;
  MeasurementsProgress progress(std::vector<double>(w.placement.tasks() + 1, 1.0), a.progress);
  const auto means = Means(w, progress);
  if (!means.ok()) return FromStatus(means.status());
  progress.Clear();
  Print(a, means->front(), {means->begin() + 1, means->end()});
  return Outcome::Ok();
}

}  // namespace percs
